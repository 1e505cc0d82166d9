"""Jobs that take their process along, and one that hears of it."""

import os
import signal

import backwave_django as backwave
from tests.fieldapp import ledger

ONCE = backwave.Retry(max_attempts=1)


@backwave.job("field.kill_for_good", retry=ONCE)
def kill_for_good(ctx: backwave.JobContext = backwave.context()) -> None:
    """Take the whole process down on the only attempt."""
    ledger.write(ctx, "start")
    os.kill(os.getpid(), signal.SIGKILL)


@backwave.on_outcome("dead_lettered", jobs=[kill_for_good])
@backwave.job("field.bury", retry=ONCE)
def bury(event: backwave.OutcomeEvent, ctx: backwave.JobContext = backwave.context()) -> str:
    """Return the id of the job that was lost."""
    ledger.write(ctx, "buried")
    return str(event.job_id)
