"""When a failed attempt is tried again.

Exponential backoff with jitter that is derived, not drawn: the same job and attempt always
wait equally long, so that a replay of the same events gives the same decisions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from functools import lru_cache
from math import inf, log
from typing import TYPE_CHECKING
from zlib import crc32

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from uuid import UUID

#: The count is kept in a small integer column.
MOST_ATTEMPTS = 32_000


@dataclass(frozen=True, slots=True)
class Retry:
    """How often and how patiently a job type is tried again.

    ``max_attempts`` counts all attempts, the first included (at least 1). The wait after attempt
    n is ``initial`` x ``multiplier`` ** (n - 1), moved by up to ``jitter`` of itself (0 to 1) in
    either direction; the longest waits are spread in the same way, up to ``maximum``.
    """

    max_attempts: int = 8
    initial: timedelta = timedelta(seconds=10)
    multiplier: float = 3.0
    maximum: timedelta = timedelta(hours=1)
    jitter: float = 0.1

    def __post_init__(self) -> None:
        if isinstance(self.max_attempts, bool) or not isinstance(self.max_attempts, int):
            raise TypeError(f"max_attempts={self.max_attempts!r}: write a whole number, 1 or more")
        checks = (
            (
                1 <= self.max_attempts <= MOST_ATTEMPTS,
                "max_attempts",
                f"write 1 to {MOST_ATTEMPTS}",
            ),
            (self.initial >= timedelta(0), "initial", "write a timedelta of zero or more"),
            (1 <= self.multiplier < inf, "multiplier", "write a number, 1 or more"),
            (self.maximum >= self.initial, "maximum", "write at least `initial`"),
            (0 <= self.jitter <= 1, "jitter", "write a share between 0 and 1"),
        )
        for good, name, hint in checks:
            if not good:
                raise ValueError(f"{name}={getattr(self, name)!r}: {hint}")

    def delay(self, *, job_id: UUID, attempt: int) -> timedelta:
        """Return the wait after ``attempt`` (1 is the first) of this job."""
        # Cut to the maximum after the jitter, half of all long waits would be equally long.
        seconds = self.maximum.total_seconds() / (1 + self.jitter)
        first = self.initial.total_seconds()
        steps = attempt - 1
        if not first:
            seconds = 0.0
        # By logarithms, since the power itself may be more than a float or a timedelta holds.
        elif steps * log(self.multiplier) < log(seconds / first):
            seconds = first * self.multiplier**steps
        swing = 2 * _share(job_id, attempt) - 1
        jittered = seconds * (1 + self.jitter * swing)
        return min(timedelta(seconds=jittered), self.maximum)

    def encode(self) -> str:
        """Return the numbers as one short text, for a lease row."""
        return _encoded(self)

    @staticmethod
    @lru_cache(maxsize=1024)
    def decode(text: str) -> Retry:
        """Return what ``encode`` wrote. Raises ``ValueError`` for anything else."""
        most, initial, multiplier, maximum, jitter = text.split(";")
        return Retry(
            max_attempts=int(most),
            initial=timedelta(seconds=float(initial)),
            multiplier=float(multiplier),
            maximum=timedelta(seconds=float(maximum)),
            jitter=float(jitter),
        )


@lru_cache(maxsize=1024)
def _encoded(policy: Retry) -> str:
    return (
        f"{policy.max_attempts};{policy.initial.total_seconds()!r};{policy.multiplier!r};"
        f"{policy.maximum.total_seconds()!r};{policy.jitter!r}"
    )


@dataclass(frozen=True, slots=True)
class RetryTable:
    """The policies a pump claims with: a job type's own, else the group's default."""

    default: Retry = field(default_factory=Retry)
    own: Mapping[str, Retry] = field(default_factory=dict)

    def of(self, wire_name: str) -> Retry:
        """Return the policy that governs an attempt at ``wire_name``."""
        return self.own.get(wire_name, self.default)


def due_after(policy: Retry, *, job_id: UUID, attempt: int, now: datetime) -> datetime | None:
    """Return when to try again after failed ``attempt``, or ``None`` when none is left."""
    if attempt >= policy.max_attempts:
        return None
    return now + policy.delay(job_id=job_id, attempt=attempt)


def due_after_loss(policy: Retry, *, job_id: UUID, attempt: int, now: datetime) -> datetime | None:
    """Return when to try again after ``attempt`` was lost, or ``None`` when none is left.

    Whoever ran it is gone, and seldom because of the job: a first loss waits for nothing. Later
    ones wait one step less than a failure, for a job that kills its process each time.
    """
    if attempt >= policy.max_attempts:
        return None
    if attempt == 1:
        return now
    return now + policy.delay(job_id=job_id, attempt=attempt - 1)


def _share(job_id: UUID, attempt: int) -> float:
    """Map a job and an attempt to a fixed point in [0, 1)."""
    return crc32(job_id.bytes + attempt.to_bytes(4, "big")) / 2**32
