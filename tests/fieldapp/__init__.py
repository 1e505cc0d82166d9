"""The app of the field cases: jobs that write down what they do, run by real processes."""
