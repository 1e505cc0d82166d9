"""What a person may ask for: one function for each operator action.

The admin, the management commands and handles call these and nothing else. Each action is a
compare-and-set on the state of what it touches, and writes who asked, when, why and what came of
it in the same transaction. So an action that comes twice, or too late, changes nothing and says
so. Who may ask is for the caller to check.

``now`` is the database's time, ``monitor.database_clock()``: what an action makes due, is due then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from backwave_django.core import bounds
from backwave_django.core.contract import ActionAnswer, ActionResult, Actor, ScheduleAnswer
from backwave_django.core.errors import InvalidOption
from backwave_django.jobs.ids import new_id
from backwave_django.store import default_store

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime
    from typing import Protocol
    from uuid import UUID

    from django.contrib.auth.base_user import AbstractBaseUser
    from django.contrib.auth.models import AnonymousUser

    from backwave_django.core.contract import WorkflowAnswer
    from backwave_django.core.rates import Rate
    from backwave_django.core.schedules import ScheduleSpec
    from backwave_django.core.workflows import RetryScope

    class _JobAction(Protocol):
        def __call__(
            self, job_ids: Sequence[UUID], *, actor: Actor, now: datetime
        ) -> tuple[ActionAnswer, ...]: ...


def actor_for(
    user: AbstractBaseUser | AnonymousUser, *, reason: str = "", source: str = "admin"
) -> Actor:
    """Return the actor that a logged-in person is."""
    return Actor(
        name=user.get_username()[: bounds.MAX_ACTOR_CHARS],
        source=source,
        user_id=None if user.pk is None else str(user.pk),
        reason=reason.strip(),
    )


def cancel(job_ids: Sequence[UUID], *, actor: Actor, now: datetime) -> tuple[ActionAnswer, ...]:
    """Cancel jobs that wait; ask those that run to stop. One answer per job, in order."""
    return _in_batches(default_store().cancel, job_ids, actor=actor, now=now)


def requeue(job_ids: Sequence[UUID], *, actor: Actor, now: datetime) -> tuple[ActionAnswer, ...]:
    """Bring ended jobs, successes apart, back with all their attempts, due now."""
    return _in_batches(default_store().requeue, job_ids, actor=actor, now=now)


def run_now(job_ids: Sequence[UUID], *, actor: Actor, now: datetime) -> tuple[ActionAnswer, ...]:
    """Make scheduled jobs due now."""
    return _in_batches(default_store().run_now, job_ids, actor=actor, now=now)


def pause(queue: str, *, until: datetime | None = None, actor: Actor, now: datetime) -> None:
    """Let no pump claim from ``queue`` until then, or until it is resumed. Asks for a reason."""
    _check_queue(queue)
    _check_reason(actor, required=True)
    if until is not None and until <= now:
        raise InvalidOption("until", until.isoformat(), "write a time in the future")
    default_store().pause(queue, until=until, actor=actor, now=now)


def resume(queue: str, *, actor: Actor, now: datetime) -> None:
    """Let pumps claim from ``queue`` again. Asks for a reason."""
    _check_queue(queue)
    _check_reason(actor, required=True)
    default_store().resume(queue, actor=actor, now=now)


def limit_queue(queue: str, limit: int | None, *, actor: Actor, now: datetime) -> None:
    """Let at most ``limit`` jobs of ``queue`` run at once, anywhere.

    ``None`` forgets what operators chose: what the settings say holds again, or no limit.
    """
    _check_queue(queue)
    _check_reason(actor, required=True)
    default_store().set_queue_limit(queue, limit, actor=actor, now=now)


def rate_queue(queue: str, rate: Rate | None, *, actor: Actor, now: datetime) -> None:
    """Let at most so many jobs of ``queue`` start in a period; ``None`` as for its limit."""
    _check_queue(queue)
    _check_reason(actor, required=True)
    default_store().set_queue_rate(queue, rate, actor=actor, now=now)


def open_queue(queue: str, window: str | None, *, actor: Actor, now: datetime) -> None:
    """Serve ``queue`` at the times of ``window`` only, or ``always``.

    ``None`` forgets what operators chose: what the settings say holds again. Jobs that run go on.
    """
    _check_queue(queue)
    _check_reason(actor, required=True)
    default_store().set_window(queue, window, actor=actor, now=now)


def limit_key(key: str, limit: int | None, *, actor: Actor, now: datetime) -> None:
    """Let at most ``limit`` jobs under a limit key run at once; ``None`` lifts the limit.

    A key with a ``*`` at its end is a pattern: the number holds for each key that begins so and
    that has none of an operator's own.
    """
    _check_key(key)
    _check_reason(actor, required=True)
    default_store().set_limit(key, limit, actor=actor, now=now)


def rate_key(key: str, rate: Rate | None, *, actor: Actor, now: datetime) -> None:
    """Let at most so many jobs under a limit key or pattern start in a period."""
    _check_key(key)
    _check_reason(actor, required=True)
    default_store().set_rate(key, rate, actor=actor, now=now)


def drain(pump_id: UUID, *, actor: Actor, now: datetime) -> bool:
    """Ask a pump to finish what it holds and stop; false when it is not alive."""
    _check_reason(actor, required=True)
    return default_store().request_drain(pump_id, actor=actor, now=now)


def pause_schedule(name: str, *, actor: Actor, now: datetime) -> ScheduleAnswer:
    """Let a schedule mint nothing until it is resumed. Asks for a reason."""
    _check_reason(actor, required=True)
    return default_store().pause_schedule(name, actor=actor, now=now)


def resume_schedule(name: str, *, actor: Actor, now: datetime) -> ScheduleAnswer:
    """Let a paused schedule begin anew from now. Asks for a reason."""
    _check_reason(actor, required=True)
    return default_store().resume_schedule(name, actor=actor, now=now)


def trigger_schedule(name: str, *, actor: Actor, now: datetime) -> ScheduleAnswer:
    """Make one job of a schedule, due now; its ticks stay as they are."""
    _check_reason(actor, required=False)
    return default_store().trigger_schedule(name, actor=actor, now=now)


def save_schedule(spec: ScheduleSpec, *, actor: Actor, now: datetime) -> ScheduleAnswer:
    """Make or change a schedule that belongs to the database, not to code."""
    _check_reason(actor, required=False)
    return default_store().save_schedule(spec, actor=actor, now=now)


def delete_schedule(name: str, *, actor: Actor, now: datetime) -> ScheduleAnswer:
    """Delete a schedule that belongs to the database, or is retired; its jobs stay."""
    _check_reason(actor, required=False)
    return default_store().delete_schedule(name, actor=actor, now=now)


def purge(*, now: datetime) -> int:
    """Delete what is past its retention, in batches until nothing is; return how much it was."""
    total = 0
    while True:
        answer = default_store().purge(limit=bounds.PURGE_BATCH, now=now)
        total += answer.count
        if not answer.full:
            return total


def cancel_workflow(workflow_id: UUID, *, actor: Actor, now: datetime) -> WorkflowAnswer:
    """Cancel every job of a workflow that waits, and ask those that run to stop."""
    _check_reason(actor, required=False)
    return default_store().cancel_workflow(workflow_id, actor=actor, now=now)


def retry_workflow(
    workflow_id: UUID, *, scope: RetryScope, actor: Actor, now: datetime
) -> WorkflowAnswer:
    """Bring the failed jobs of a workflow back in place, all together; see ``RetryScope``."""
    _check_reason(actor, required=False)
    return default_store().retry_workflow(workflow_id, scope=scope, actor=actor, now=now)


def restart_workflow(workflow_id: UUID, *, actor: Actor, now: datetime) -> WorkflowAnswer:
    """Insert a workflow that is over once more, whole, under new ids."""
    _check_reason(actor, required=False)
    return default_store().restart_workflow(workflow_id, new_id=new_id, actor=actor, now=now)


def tally(answers: Sequence[ActionAnswer]) -> dict[ActionResult, int]:
    """Return how many answers there are of each result that occurs."""
    counts: dict[ActionResult, int] = {}
    for answer in answers:
        counts[answer.result] = counts.get(answer.result, 0) + 1
    return counts


def _in_batches(
    action: _JobAction, job_ids: Sequence[UUID], *, actor: Actor, now: datetime
) -> tuple[ActionAnswer, ...]:
    """Act on bounded batches, each a transaction of its own; an id given twice counts once."""
    _check_reason(actor, required=False)
    unique = tuple(dict.fromkeys(job_ids))
    return tuple(
        answer for batch in _batches(unique) for answer in action(batch, actor=actor, now=now)
    )


def _batches(job_ids: Sequence[UUID]) -> Iterator[Sequence[UUID]]:
    for start in range(0, len(job_ids), bounds.MAX_BATCH):
        yield job_ids[start : start + bounds.MAX_BATCH]


def _check_queue(queue: str) -> None:
    if not queue or len(queue) > bounds.MAX_QUEUE_CHARS:
        raise InvalidOption("queue", queue, f"write 1 to {bounds.MAX_QUEUE_CHARS} characters")


def _check_key(key: str) -> None:
    if not key or len(key) > bounds.MAX_LIMIT_KEY_CHARS:
        raise InvalidOption("key", key, f"write 1 to {bounds.MAX_LIMIT_KEY_CHARS} characters")


def _check_reason(actor: Actor, *, required: bool) -> None:
    if required and not actor.reason.strip():
        raise InvalidOption("reason", actor.reason, "say why: others will want to know")
    if len(actor.reason) > bounds.MAX_REASON_CHARS:
        raise InvalidOption(
            "reason",
            f"{actor.reason[:20]}…",
            f"write {bounds.MAX_REASON_CHARS:,} characters at most",
        )
