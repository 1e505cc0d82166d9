"""The shop that the demo, these tests and the benchmark run on."""
