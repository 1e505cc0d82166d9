"""Tests of what a job author touches."""
