"""Real processes on a real database, made to die; then an audit of what is left."""
