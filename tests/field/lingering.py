"""The settings of these cases, in a process that has decided how it ends and takes its time.

It makes the file that ``FIELD_LINGERS`` names when its interpreter begins to end, and goes on when
there is one more, with ``.done`` to its name. Children of a parent end as they always do.
"""

import atexit
import os
import sys
import threading
from pathlib import Path

from backwave_django.pumps.children import CHILD_OPTION
from tests.field.settings import *  # noqa: F403 - the settings of these cases

_PAUSE = threading.Event()


def linger() -> None:
    """Wait in the last moments of this process."""
    mark = Path(os.environ["FIELD_LINGERS"])
    mark.touch()
    done = mark.with_suffix(".done")
    while not done.exists():
        _PAUSE.wait(0.02)


if CHILD_OPTION not in sys.argv:
    atexit.register(linger)
