"""A whole cluster in virtual time: real drivers, the reference store, and anything that can fail."""
