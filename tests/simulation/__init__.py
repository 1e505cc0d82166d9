"""A cluster in virtual time: real drivers, the reference store, and all that can fail."""
