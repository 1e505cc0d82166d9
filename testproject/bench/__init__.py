"""Measure the job system, and its peers, as a user runs them."""
