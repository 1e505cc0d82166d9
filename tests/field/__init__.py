"""Field cases: real processes on real servers, with one fault each, and what must be true after."""
