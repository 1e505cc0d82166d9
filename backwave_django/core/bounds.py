"""Every limit of the system, each with its reason.

Sizes are bytes of UTF-8 unless the name says otherwise.
"""

from __future__ import annotations

from datetime import timedelta

#: A payload is a reference to work, not the work: a megabyte holds any list of keys that is sane.
MAX_PAYLOAD_BYTES = 1024 * 1024
#: An output is read by dependents and shown to people; larger things belong in a file storage.
MAX_OUTPUT_BYTES = 1024 * 1024
#: Tags are read with every claim and listed with every row.
MAX_TAGS_BYTES = 4096
#: A deep traceback repeats itself; both its ends are kept.
MAX_TRACEBACK_CHARS = 32_000
MAX_MESSAGE_CHARS = 4_000
MAX_ERROR_CLASS_CHARS = 255

#: Wire names and queue names are index keys and metric labels.
MAX_WIRE_NAME_CHARS = 200
MAX_QUEUE_CHARS = 100
MAX_UNIQUE_KEY_CHARS = 255
MAX_LIMIT_KEY_CHARS = 200
MAX_GROUP_CHARS = 100
MAX_SCHEDULE_CHARS = 200
MAX_OWNER_CHARS = 100
MAX_WORKFLOW_CHARS = 200
MAX_STEP_CHARS = 200
MAX_REASON_CHARS = 2_000
MAX_ACTOR_CHARS = 150

#: What a caller may ask for; stored inverted, so that ascending order is more urgent first.
MIN_PRIORITY = -100
MAX_PRIORITY = 100

#: Past 100 rows a batch gains nothing, and it holds its locks for longer.
MAX_BATCH = 500
#: Children that one reporting transaction settles itself; the sweep takes the rest.
MAX_SETTLED_IN_REPORT = 1_000
#: Limit keys that one claim looks at from its rotating cursor.
MAX_KEYS_PER_CLAIM = 256
#: Rows that one maintenance command touches, so that ordinary claims alternate with it.
SWEEP_BATCH = 500
PURGE_BATCH = 1_000
#: Schedules that are read at once, and those of them that one transaction decides about.
SCHEDULE_BATCH = 500
MINT_BATCH = 100
#: Rows sent in one INSERT; more are sent as several statements of the same transaction.
ENQUEUE_CHUNK = 1_000

#: A shorter snooze or retry is a busy loop.
MIN_SNOOZE = timedelta(seconds=1)
#: How long a handed-back job rests before another pump may look at it.
MIN_HAND_BACK = timedelta(seconds=10)
MAX_HAND_BACK = timedelta(seconds=60)
#: After a time-out was signalled, a body gets this long before its slot is replaced.
SLOT_GRACE = timedelta(seconds=5)
#: Bodies are asked to stop this long before a drain runs out of patience.
DRAIN_NOTICE = timedelta(seconds=2)
#: A drain whose last words meet a dead database still ends.
EXIT_GRACE = timedelta(seconds=1)
#: Web processes send one hint, then none for this long; pumps look once more after it.
HINT_WINDOW = timedelta(milliseconds=10)
#: What is claimed because of a hint begins before its pump looks for more: both need the
#: interpreter. A brisk body ends meanwhile, and is reported along with the look.
BODIES_FIRST = timedelta(milliseconds=1)
#: An outcome whose row somebody holds is offered again after about two of a busy pump's turns.
BUSY_RETRY = timedelta(milliseconds=10)
PURGE_INTERVAL = timedelta(minutes=1)

#: What a column for whole numbers holds; whoever wants more wants no cap.
MAX_CAP = 2**31 - 1
#: A token is a whole number of microseconds: a higher rate would be none at all.
MAX_RATE = 1_000_000
MAX_RATE_PERIOD = timedelta(days=366)
#: Clocks of pumps agree within this; a bucket that fills for longer than that met another clock.
MAX_RATE_SKEW = timedelta(seconds=1)
MAX_RATE_CHARS = 40
#: A week with a window of its own for each day, and as much again.
MAX_WINDOW_CHARS = 500
