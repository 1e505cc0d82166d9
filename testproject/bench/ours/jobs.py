"""The measured job types of backwave_django itself."""

import backwave_django as backwave
from testproject.bench import bodies

NOOP = backwave.job("bench.noop", queue="bench")(bodies.noop)
SLEEP = backwave.job("bench.sleep", queue="bench")(bodies.sleep)
ORM = backwave.job("bench.orm", queue="bench")(bodies.orm)
NAP = backwave.job("bench.nap", queue="bench")(bodies.nap)

TYPES = {"noop": NOOP, "sleep": SLEEP, "orm": ORM, "nap": NAP}
