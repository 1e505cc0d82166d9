"""Evidence made by hand: a small run in which everything is as it must be."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from backwave_django.core.states import TERMINAL
from backwave_django.jobs.observers import MARK
from tests.builders import SECOND, T0
from tests.torture.evidence import End, Evidence
from tests.torture.jobs import MOURN
from tests.torture.journal import Entry
from tests.torture.operators import TORTURER

Row = dict[str, Any]


class Scene:
    """Rows that a test may spoil before it has them audited."""

    def __init__(self) -> None:
        self.jobs: dict[str, Row] = {}
        self.outcomes: dict[str, list[Row]] = {}
        self.leases: list[Row] = []
        self.edges: list[Row] = []
        self.actions: list[Row] = []
        self.entries: list[Entry] = []
        self.pumps = {"pump": {"id": "pump", "queues": ["plain"]}}
        self.heard: dict[str, End] = {}
        self.settle_queue: list[str] = []
        self.server_log = "LOG:  checkpoint\nERROR:  canceling statement due to lock timeout\n"
        self._outcome_id = 0

    def evidence(self) -> Evidence:
        return Evidence(
            jobs=self.jobs,
            outcomes=self.outcomes,
            leases=self.leases,
            edges=self.edges,
            settle_queue=self.settle_queue,
            actions=self.actions,
            pumps=self.pumps,
            heard=self.heard,
            entries=self.entries,
            server_log=self.server_log,
        )

    def say(self, what: str, *, at: float = 0.0, **data: object) -> None:
        """Write a line of the journal."""
        self.entries.append(Entry(what, at, 1, data))

    def job(self, name: str, *ends: tuple[Any, ...], **columns: Any) -> Row:
        """Add a job that was committed, with what became of it: see ``end``."""
        row: Row = {
            "id": name,
            "wire_name": "torture.work",
            "state": "scheduled",
            "queue": "plain",
            "run": 0,
            "spent": 0,
            "max_attempts": 3,
            "pending_parents": 0,
            "created_at": T0,
            "tags": {"label": f"t-{name}"},
            **dict.fromkeys(("cause", "terminal_at", "output", "unique_key", "unique_live")),
            **dict.fromkeys(("schedule", "scheduled_for")),
        }
        self.jobs[name] = row
        self.say("enqueue.asked", label=f"t-{name}")
        self.say("enqueue.committed", label=f"t-{name}", job=name, created=True)
        for each in ends:
            self.end(name, *each)
        row.update(columns)
        return row

    def end(
        self, name: str, kind: object, run: int | None, state: object, cause: object = None
    ) -> None:
        """Let an attempt, or the job without one, come to an end."""
        job = self.jobs[name]
        self._outcome_id += 1
        under_lease: Mapping[str, Any] = {"run": run, "pump_id": None if run is None else "pump"}
        outcome = {"id": self._outcome_id, "kind": kind, "attempt": job["spent"] + 1}
        self.outcomes.setdefault(name, []).append(
            {**outcome, **under_lease, "state": state, "cause": cause}
        )
        spends = kind in {"failed", "lapsed", "timed_out", "gave_up", "output_refused"}
        job.update(state=state, cause=cause, spent=job["spent"] + spends)
        job["run"] = max(job["run"], run or 0)
        job["terminal_at"] = T0 + SECOND if state in TERMINAL else None
        if kind in {"succeeded", "failed", "lapsed", "cancelled"} and run is not None:
            self.say("body.started", job=name, run=run, queue="plain")
        if kind == "succeeded":
            job["output"] = f'{{"run":{run}}}'
            job["tags"] = {**job["tags"], f"r{run}": "1"}
        if state == "dead_lettered" and name not in self.heard:
            self.tell(End(name, str(state), str(cause), run, outcome["attempt"]))

    def tell(self, end: End) -> str:
        """Add an observer's job, which has succeeded, for an end."""
        name = f"observer-{len(self.heard)}"
        self.job(name, wire_name=MOURN, tags={MARK: end.job_id})
        del self.entries[-2:]  # nobody asked for it
        self.heard[name] = end
        self.end(name, "succeeded", 1, "succeeded", "returned")
        return name

    def link(self, parent: str, child: str, mode: str = "on_success") -> Row:
        """Add a settled edge."""
        edge = {"parent_id": parent, "child_id": child, "mode": mode, "settled": True}
        self.edges.append(edge)
        return edge

    def act(self, action: str, target: str, result: str = "done") -> Row:
        """Let an operator do something, and have the answer."""
        label = f"op-{len(self.actions)}"
        told = {"label": label, "action": action, "targets": [target]}
        self.say("operator.asked", at=10.0, **told)
        self.say("operator.answered", at=11.0, **told, results=[result])
        row = {"action": action, "target": target, "result": result, "reason": label}
        self.actions.append({**row, "actor_name": TORTURER, "at": T0})
        return self.actions[-1]


def healthy() -> Scene:
    """A run that kept every promise."""
    scene = Scene()
    scene.job("parent", ("succeeded", 1, "succeeded", "returned"))
    scene.job("child", ("succeeded", 1, "succeeded", "returned"))
    scene.link("parent", "child")
    again = (("failed", 1, "scheduled"), ("lapsed", 2, "dead_lettered", "attempts"))
    scene.job("again", *again)
    scene.act("requeue", "again")
    scene.jobs["again"]["spent"] = 0
    scene.end("again", "snoozed", 3, "scheduled")
    scene.end("again", "succeeded", 4, "succeeded", "returned")
    scene.job("late", ("expired", None, "expired", "deadline"))
    scene.job("stopped", ("cancelled", None, "cancelled", "operator"))
    scene.act("cancel", "stopped")
    scene.job("asked", ("cancelled", 1, "cancelled", "operator"))
    scene.act("cancel", "asked", "requested")
    scene.job("orphan", ("cancelled", None, "cancelled", "parent"))
    scene.job("failing", ("gave_up", 1, "dead_lettered", "gave_up"))
    scene.link("failing", "orphan")
    alien = (("unroutable", 1, "scheduled"), ("unroutable", 2, "quarantined", "unroutable"))
    scene.job("alien", *alien)
    for number in range(2):
        at = T0 + 5 * number * SECOND
        tick = {"schedule": "tick", "scheduled_for": at, "created_at": at + timedelta(0)}
        scene.job(f"tick-{number}", ("succeeded", 1, "succeeded", "returned"), **tick)
    scene.job("keyed", ("succeeded", 1, "succeeded", "returned"), unique_key="after-failure-1")
    scene.job("key-lost", ("gave_up", 1, "dead_lettered", "gave_up"), unique_key="after-failure-1")
    scene.act("pause", "plain")
    scene.act("resume", "plain")
    return scene
