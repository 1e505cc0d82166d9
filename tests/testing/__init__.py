"""Tests of what authors test with."""
