"""Log lines and the attempts they belong to.

While a body runs, every record made in its context is kept with the attempt, within a cap. To
have the job's id on records, name ``JobFilter`` in a handler's filters::

    "filters": {"job": {"()": "backwave_django.pumps.joblog.JobFilter"}}

Nothing here adds handlers, changes levels or touches records.
"""

from __future__ import annotations

import logging
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from backwave_django.pumps.failures import clean, cut

if TYPE_CHECKING:
    from uuid import UUID

#: A log is read next to the outcome; whoever needs more has a log system.
MAX_LOG_CHARS: Final = 16_000
_MAX_LINE_CHARS: Final = 1_000
#: Lines after these are counted, not kept: a chatty body must not grow the process.
_MAX_LINES: Final = 500


class JobLog:
    """The lines that one attempt has logged so far."""

    __slots__ = ("_lines", "_untold", "job_id")

    def __init__(self, job_id: UUID) -> None:
        self.job_id = job_id
        self._lines: list[str] = []
        self._untold = 0

    def add(self, record: logging.LogRecord) -> None:
        """Keep one record as a line. Raises nothing."""
        if len(self._lines) >= _MAX_LINES:
            self._untold += 1
            return
        try:
            message = record.getMessage()
        except Exception:  # arguments that do not fit: the handlers will say so
            message = str(record.msg)
        at = datetime.fromtimestamp(record.created, UTC).strftime("%H:%M:%S.%f")[:-3]
        line = f"{at} {record.levelname} {record.name}: {message}"
        self._lines.append(cut(clean(line), most=_MAX_LINE_CHARS))

    def text(self) -> str | None:
        """Return the lines, or ``None`` when there are none."""
        if not self._lines:
            return None
        untold = [f"... {self._untold:,} more lines ..."] if self._untold else []
        return cut("\n".join([*self._lines, *untold]), most=MAX_LOG_CHARS)


current_log: Final[ContextVar[JobLog | None]] = ContextVar("backwave_job_log", default=None)


class JobFilter(logging.Filter):
    """Sets ``job_id`` on each record that has none: the running job's id, or ``None``."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Let every record pass."""
        if not hasattr(record, "job_id"):
            log = current_log.get()
            record.job_id = None if log is None else str(log.job_id)
        return True


class _KeepingFactory:
    """Makes records as before, and shows each to the attempt that it was made in."""

    def __init__(self, make: Any) -> None:
        self._make = make

    def __call__(self, *args: Any, **kwargs: Any) -> logging.LogRecord:
        record: logging.LogRecord = self._make(*args, **kwargs)
        log = current_log.get()
        if log is not None:
            log.add(record)
        return record


def keep_log_lines() -> None:
    """Begin to keep the lines of bodies with their attempts, in this process, for good."""
    make = logging.getLogRecordFactory()
    if not isinstance(make, _KeepingFactory):
        logging.setLogRecordFactory(_KeepingFactory(make))
