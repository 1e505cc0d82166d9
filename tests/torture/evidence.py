"""What is left after a run: the tables, and what clients, bodies and the watcher wrote down."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from backwave_django import models
from backwave_django.core.observing import OutcomeEvent
from backwave_django.core.states import TERMINAL
from backwave_django.jobs.payload import decode_call
from tests.torture.jobs import MOURN
from tests.torture.journal import Entry
from tests.torture.operators import TORTURER

Row = Mapping[str, Any]
_NOT_NEEDED = {"payload", "traceback", "log", "message"}


class End(NamedTuple):
    """One end of one job."""

    job_id: str
    state: str
    cause: str
    run: int | None
    attempt: int


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Rows by their columns. ``outcomes`` are those of each job in the order of their writing.

    ``heard`` is what each observer's job was told. Ids are texts here, as the journal has them.
    """

    jobs: Mapping[str, Row]
    outcomes: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    leases: Sequence[Row] = ()
    edges: Sequence[Row] = ()
    settle_queue: Sequence[str] = ()
    actions: Sequence[Row] = ()
    pumps: Mapping[str, Row] = field(default_factory=dict)
    heard: Mapping[str, End] = field(default_factory=dict)
    entries: Sequence[Entry] = ()
    server_log: str = ""

    def history(self, job_id: str) -> Sequence[Row]:
        """The outcomes of one job."""
        return self.outcomes.get(job_id, ())

    def told(self, what: str) -> Iterator[Row]:
        """The details of all entries of one kind."""
        return (entry.data for entry in self.by_kind.get(what, ()))

    @cached_property
    def by_kind(self) -> dict[str, list[Entry]]:
        found: dict[str, list[Entry]] = defaultdict(list)
        for entry in self.entries:
            found[entry.what].append(entry)
        return found

    @cached_property
    def comebacks(self) -> dict[str, int]:
        """How often each job was brought back."""
        found: dict[str, int] = defaultdict(int)
        for action in self.actions:
            if action["action"] == "requeue" and action["result"] == "done":
                found[action["target"]] += 1
        return found

    @cached_property
    def actions_by_label(self) -> dict[str, list[Row]]:
        """What the operators of the run did; its own preparations are not among that."""
        found: dict[str, list[Row]] = defaultdict(list)
        for action in self.actions:
            if action["actor_name"] == TORTURER:
                found[action["reason"]].append(action)
        return found

    @cached_property
    def bodies(self) -> dict[str, dict[int, int]]:
        """Per job and run, how often a body began."""
        found: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
        for told in self.told("body.started"):
            found[told["job"]][told["run"]] += 1
        return found

    @cached_property
    def parents(self) -> dict[str, list[Row]]:
        """The incoming edges of each job."""
        found: dict[str, list[Row]] = defaultdict(list)
        for edge in self.edges:
            found[edge["child_id"]].append(edge)
        return found

    @cached_property
    def by_label(self) -> dict[str, list[str]]:
        """The jobs of each label; those of observers, for which nobody asked, have none."""
        found: dict[str, list[str]] = defaultdict(list)
        for job_id in self.jobs.keys() - self.heard.keys():
            found[self.label(job_id)].append(job_id)
        return found

    def label(self, job_id: str) -> str:
        """The name that its client gave a job."""
        return str(self.jobs[job_id]["tags"].get("label"))


def is_over(row: Row) -> bool:
    """Whether a job, or what an outcome made of it, is terminal."""
    return row["state"] in TERMINAL


def gather(entries: list[Entry], *, server_log: str) -> Evidence:
    """Read the tables on Django's connection."""
    outcomes: dict[str, list[Row]] = defaultdict(list)
    for row in _rows(models.Outcome, "id"):
        outcomes[row["job_id"]].append(row)
    return Evidence(
        jobs={row["id"]: row for row in _rows(models.Job, "id")},
        outcomes=outcomes,
        leases=_rows(models.Lease, "id"),
        edges=_rows(models.Dependency, "id"),
        settle_queue=[row["parent_id"] for row in _rows(models.SettleQueue, "id")],
        actions=_rows(models.OperatorAction, "id"),
        pumps={row["id"]: row for row in _rows(models.Pump, "id")},
        heard=_heard(),
        entries=entries,
        server_log=server_log,
    )


def _heard() -> dict[str, End]:
    found = {}
    payloads = models.Job.objects.filter(wire_name=MOURN).values_list("id", "payload")
    for job_id, payload in payloads.iterator():
        positional, named = decode_call(payload)
        (event,) = (*positional, *named.values())
        assert isinstance(event, OutcomeEvent)
        how = event.state.value, event.cause.value, event.run, event.attempt
        found[str(job_id)] = End(str(event.job_id), *how)
    return found


def _rows(model: Any, order: str) -> list[Row]:
    names = [f.attname for f in model._meta.concrete_fields if f.attname not in _NOT_NEEDED]
    uuids = {
        f.attname
        for f in model._meta.concrete_fields
        if f.get_internal_type() == "UUIDField"
        or (f.is_relation and f.target_field.get_internal_type() == "UUIDField")
    }
    return [
        {name: str(value) if name in uuids and value is not None else value for name, value in row}
        for row in (
            zip(names, values, strict=True)
            for values in model._default_manager.order_by(order).values_list(*names).iterator()
        )
    ]


def left_over(evidence: Evidence) -> str:
    """What has not ended and who had it, for a person who looks for the reason."""
    live = {job_id: row for job_id, row in evidence.jobs.items() if not is_over(row)}
    found = {
        "jobs": live,
        "outcomes": {job_id: evidence.history(job_id) for job_id in live},
        "leases": evidence.leases,
        "pumps": evidence.pumps,
        "settle_queue": evidence.settle_queue,
    }
    return json.dumps(found, indent=1, default=str)
