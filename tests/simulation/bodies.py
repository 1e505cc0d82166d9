"""Bodies in virtual time: what a job of the plan does in its ``run``-th run, and how it ends."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from backwave_django.core import events as e
from backwave_django.core.commands import CancelReason
from backwave_django.core.jobs import LeasedJob
from backwave_django.core.outcomes import Failure, Unroutable
from tests.simulation.plans import Behaviour, JobPlan

if TYPE_CHECKING:
    from tests.simulation.transactions import Transaction

OOPS = Failure("ValueError", "oops")
RETURN: Behaviour = ("return", 0.05, True)
#: Ends that come before any body could begin.
BODILESS = {"arguments", "undecodable", "unknown"}


def behaviour(job: JobPlan, run: int, *, knows: list[str], extra: float) -> Behaviour:
    """What becomes of a run on a node that knows these wire names."""
    kind, span, heeds = job.bodies[run - 1] if run <= len(job.bodies) else RETURN
    if job.wire_name not in knows:
        return ("unknown", 0.001, True)
    if kind in BODILESS:
        return (kind, 0.001, True)
    return (kind, span + extra, heeds)


@dataclass
class Body:
    """A body on a node. ``ends_at`` is virtual time; ``left`` is set while its node is frozen."""

    job: LeasedJob
    kind: str
    heeds: bool
    started_at: datetime
    ends_at: float
    left: float = 0.0
    asked: CancelReason | None = None
    stopping: bool = False
    void: bool = False
    replaced: bool = False
    #: Grows when the end is moved, so that the old one is recognised.
    version: int = 0
    #: That of an atomic body.
    transaction: "Transaction | None" = None

    @property
    def is_over(self) -> bool:
        """Whether it has returned or raised, and only its transaction is not over."""
        return self.transaction is not None and self.transaction.ending

    @property
    def began(self) -> bool:
        return self.kind not in BODILESS

    def ends(self, *, now: datetime) -> e.AttemptReported:
        """The event that the worker puts into the inbox."""
        lease = self.job.lease_id
        gives_in = self.heeds and (self.asked is not None or self.stopping)
        kind = "cancel" if self.began and gives_in else self.kind
        if kind == "return":
            return e.AttemptSucceeded(lease, self.started_at, now, f'"{self.job.run}"', "{}")
        return self._other(kind, now=now)

    def _other(self, kind: str, *, now: datetime) -> e.AttemptReported:
        lease, began = self.job.lease_id, self.started_at
        match kind:
            case "unknown" | "arguments":
                reasons = {"unknown": Unroutable.UNKNOWN_TYPE, "arguments": Unroutable.ARGUMENTS}
                return e.AttemptUnroutable(
                    lease_id=lease, started_at=began, reason=reasons[kind], failure=OOPS
                )
            case "undecodable":
                return e.AttemptUndecodable(lease_id=lease, started_at=began, failure=OOPS)
            case "snooze":
                return e.AttemptSnoozed(
                    lease_id=lease, started_at=began, finished_at=now, delay=timedelta(seconds=2)
                )
            case "cancel":
                return e.AttemptCancelled(lease_id=lease, started_at=began, finished_at=now)
            case "refuse":
                return e.AttemptOutputRefused(
                    lease_id=lease, started_at=began, finished_at=now, failure=OOPS
                )
            case _:
                return e.AttemptFailed(
                    lease_id=lease,
                    started_at=began,
                    finished_at=now,
                    failure=OOPS,
                    retry_after=timedelta(seconds=1) if kind == "retry after" else None,
                    gave_up=kind == "give up",
                )
