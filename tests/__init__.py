"""Everything that checks backwave_django; `python -m tests` runs all of it on both databases."""
