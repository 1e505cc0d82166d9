"""What differs between databases, and only that."""
