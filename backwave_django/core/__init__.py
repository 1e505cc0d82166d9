"""Every decision of the system, free of I/O, threads, clocks, randomness and frameworks."""
