"""A small but real shop: what the demo runs, and what the tests and the benchmark run on."""
