"""One run: a crew is tormented for a while, then healed, left to come to rest, and audited."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.db import connection, connections

from backwave_django import operations
from backwave_django.core.contract import Actor
from backwave_django.core.schedules import Rule, ScheduleSpec
from backwave_django.core.states import TERMINAL
from backwave_django.models import Job, Lease, Outcome, SettleQueue
from backwave_django.monitor import database_clock
from backwave_django.pumps.clock import SystemClock
from tests.torture import evidence, jobs, reactions
from tests.torture.audit import Violation, audit
from tests.torture.children import runpumps
from tests.torture.crew import Crew
from tests.torture.databases import PostgresServer, SqliteFile
from tests.torture.faults import Tormentor
from tests.torture.journal import Journal
from tests.torture.loops import Stop, stream, tried
from tests.torture.operators import PAUSABLE, TENANTS

SCHEDULE = "torture-tick"
LONGEST_REST_SECONDS = 600.0


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a run does, beside what its seed says. ``other_pumps`` runs pumps of another release."""

    seed: int
    seconds: float
    pumps: int = 4
    enqueuers: int = 2
    operators: int = 1
    backlog: int = 400
    torment: bool = True
    patience_seconds: float = 60.0
    other_pumps: Callable[[str], int] | None = None


@dataclass(frozen=True, kw_only=True)
class Report:
    """What became of it."""

    plan: Plan
    violations: list[Violation]
    faults: dict[str, int]
    states: dict[str, int] = field(default_factory=dict)
    kinds: dict[str, int] = field(default_factory=dict)
    figures: dict[str, Any] = field(default_factory=dict)


class Run:
    """One run on a database of its own."""

    def __init__(
        self, plan: Plan, database: SqliteFile | PostgresServer, *, directory: Path
    ) -> None:
        self._plan = plan
        self._database = database
        self._directory = directory
        self._stop = Stop()
        self._clock = SystemClock()
        self._journal = Journal.current()
        self._crew = Crew(
            seed=plan.seed, directory=directory, backlog=plan.backlog, deadly=plan.torment
        )
        rng = self._rng = stream(plan.seed, "torment")
        self._tormentor = Tormentor(self._crew, database, rng, directory=directory)

    def go(self) -> Report:
        """Run to the end."""
        self._prepare()
        plan, crew = self._plan, self._crew
        others = plan.pumps // 2 if plan.other_pumps else 0
        crew.add_pumps(plan.pumps - others, runpumps)
        crew.add_pumps(others, plan.other_pumps or runpumps)
        crew.add_clients(enqueuers=plan.enqueuers, operators=plan.operators)
        try:
            self._torment()
            rested = self._heal()
        finally:
            crew.close()
            self._tormentor.heal()
        return self._report(rested=rested)

    def _prepare(self) -> None:
        """Make the tables, the limits that stay, and a schedule."""
        call_command("migrate", verbosity=0)
        actor, now = _actor("prepare"), database_clock()
        operations.limit_queue("capped", jobs.CAPPED_LIMIT, actor=actor, now=now)
        minted = jobs.tick.s().new_job()
        spec = ScheduleSpec(
            name=SCHEDULE,
            rule=Rule(every_seconds=1),
            wire_name=minted.wire_name,
            queue=minted.queue,
            payload=minted.payload,
            no_overlap=True,
        )
        operations.save_schedule(spec, actor=actor, now=now)
        connections.close_all()  # nobody may inherit one

    def _torment(self) -> None:
        began = self._clock.mark()
        next_at = 1.0
        while (at := self._clock.mark() - began) < self._plan.seconds:
            self._crew.tend(at=at)
            if self._plan.torment and at >= next_at:
                self._tormentor.act(at=at)
                next_at = at + self._rng.uniform(0.1, 1.0)
            if not self._stop.pause(0.05):
                break

    def _heal(self) -> bool:
        """Undo all that hinders; wait until nothing is left to do. Return whether that came."""
        crew = self._crew
        crew.send_home(crew.clients())
        self._tormentor.heal()
        # On SQLite a stopped pump may hold the only lock there is, and nobody can help it.
        if self._database.vendor != "sqlite" and not self._freed():
            waits = "whoever resumes queues waits for a pump that is stopped"
            self._journal.write("operator.broke", error=waits)
        for place in crew.pumps():
            place.due_at = None
        crew.tend(at=self._clock.mark())
        rested = self._freed() and self._comes_to_rest()
        if rested:
            crew.stop(crew.places)
        else:
            crew.show_stacks()
            self._stop.pause(1.0)
        return rested

    def _freed(self) -> bool:
        ends_at = self._clock.mark() + self._plan.patience_seconds / 3
        while tried(self._free) is None:
            if self._clock.mark() > ends_at:
                return False
            self._stop.pause(0.2)
        return True

    def _comes_to_rest(self) -> bool:
        """Wait until nothing is left to do, as long as something is being done."""
        began = progress_at = self._clock.mark()
        written = 0
        while self._clock.mark() - progress_at < self._plan.patience_seconds:
            if self._clock.mark() - began > LONGEST_REST_SECONDS:
                return False
            self._crew.tend(at=self._clock.mark())
            if tried(_is_at_rest):
                return True
            seen = tried(Outcome.objects.count) or written
            connections.close_all()
            if seen != written:
                written, progress_at = seen, self._clock.mark()
            self._stop.pause(0.3)
        return False

    def _free(self) -> bool:
        """Resume queues, lift limits, stop the schedule."""
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute("SET lock_timeout = '10s'")
        actor, now = _actor("heal"), database_clock()
        for queue in PAUSABLE:
            self._journal.write("operator.asked", label="", action="resume", targets=[queue])
            operations.resume(queue, actor=actor, now=now)
            operations.limit_queue(queue, None, actor=actor, now=now)
        for key in TENANTS:
            operations.limit_key(key, None, actor=actor, now=now)
        operations.pause_schedule(SCHEDULE, actor=actor, now=now)
        connections.close_all()
        return True

    def _report(self, *, rested: bool) -> Report:
        found = evidence.gather(self._journal.read(), server_log=self._database.log())
        violations = audit(found)
        connections.close_all()
        if not rested:
            (self._directory / "left.json").write_text(evidence.left_over(found))
            violations.append(Violation("every-job-terminates", "it did not come to rest"))
        return Report(
            plan=self._plan,
            violations=violations,
            faults=self._tormentor.counts,
            states=_count(job["state"] for job in found.jobs.values()),
            kinds=_count(row["kind"] for rows in found.outcomes.values() for row in rows),
            figures={
                "jobs": len(found.jobs),
                "bodies": len(found.by_kind.get("body.started", ())),
                "edges": len(found.edges),
                "operator actions": len(found.actions),
                **reactions.figures(found),
                "pumps": len(found.pumps),
                "processes": sum(place.lives for place in self._crew.everybody),
            },
        )


def _actor(reason: str) -> Actor:
    return Actor(name="torture", source="code", reason=reason)


def _is_at_rest() -> bool:
    return not (
        Job.objects.exclude(state__in=TERMINAL).exists()
        or Lease.objects.exists()
        or SettleQueue.objects.exists()
    )


def _count(words: Any) -> dict[str, int]:
    found: dict[str, int] = {}
    for word in words:
        found[word] = found.get(word, 0) + 1
    return dict(sorted(found.items(), key=lambda pair: -pair[1]))
