"""A plan: all that happens to a cluster from the outside. The same plan is the same run.

Everything is addressed by what it acts on (a node and its third claim, a job and its second run),
never by the order in which it was drawn: taking one fault away moves no other.
"""

import json
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any
from zlib import crc32

#: What a body does: how it ends, after how many seconds, and whether it heeds being asked to stop.
Behaviour = tuple[str, float, bool]


@dataclass(frozen=True, kw_only=True)
class Group:
    """The dials of a worker group. Spans are seconds."""

    name: str
    queues: list[str]
    weights: dict[str, int] | None = None
    pool_size: int = 2
    batch: int = 4
    outcome_batch: int = 4
    poll: float = 1.0
    most_poll: float | None = None
    maintenance: float = 2.0
    shutdown: float = 8.0
    knows: list[str] = field(default_factory=lambda: ["once", "twice", "hasty", "rare"])


@dataclass(frozen=True, kw_only=True)
class NodePlan:
    """One node: its group, when it starts, and whether its host knows when it is dead."""

    group: str
    start: float = 0.0
    tells_of_the_dead: bool = False


@dataclass(frozen=True, kw_only=True)
class JobPlan:
    """One job. Jobs with the same ``at`` and ``batch`` are enqueued together."""

    at: float
    queue: str = "a"
    wire_name: str = "twice"
    batch: int = 0
    priority: int = 0
    delay: float | None = None
    deadline: float | None = None
    limit_key: str | None = None
    unique_key: str | None = None
    if_duplicate: str = "allow_after_failure"
    parents: list[tuple[int, str]] = field(default_factory=list)
    #: One behaviour a run; runs beyond them return at once.
    bodies: list[Behaviour] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class SchedulePlan:
    """One schedule; it ticks until the plan ends."""

    name: str
    every: float
    queue: str = "a"
    wire_name: str = "twice"
    no_overlap: bool = False
    catch_up: str = "skip"


@dataclass(frozen=True, kw_only=True)
class Action:
    """Something an operator does.

    To a job (its number), a queue, a key, a node, a schedule or a workflow
    (the batch of its jobs).
    """

    at: float
    kind: str
    target: str
    value: float | None = None


@dataclass(frozen=True, kw_only=True)
class Fault:
    """Something that goes wrong. Which fields count depends on the kind: see ``faults``."""

    kind: str
    node: int | None = None
    at: float = 0.0
    lasts: float = 0.0
    #: For faults of one round trip or one body: the command or job, and which one of them.
    what: str = ""
    nth: int = 0
    how: str = ""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A scenario and the faults that meet it."""

    seed: int
    level: str = "none"
    lease: float = 12.0
    heartbeat: float = 4.0
    grace: float = 20.0
    ends: float = 60.0
    groups: list[Group] = field(default_factory=list)
    nodes: list[NodePlan] = field(default_factory=list)
    jobs: list[JobPlan] = field(default_factory=list)
    schedules: list[SchedulePlan] = field(default_factory=list)
    actions: list[Action] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    #: The ends that somebody observes.
    observed: list[str] = field(default_factory=list)
    #: The batches of jobs that are workflows.
    workflows: list[int] = field(default_factory=list)
    #: The job types whose bodies are atomic.
    atomic: list[str] = field(default_factory=list)
    #: What a failing run broke, for the reader.
    broke: str = ""

    def share(self, *address: object) -> float:
        """A number from 0 to 1 that belongs to an address: small things need no fault each."""
        return crc32(repr((self.seed, *address)).encode()) / 2**32

    def dump(self) -> str:
        return json.dumps(asdict(self), indent=1) + "\n"


def load(text: str) -> Plan:
    values = json.loads(text)
    kinds: dict[str, Any] = {
        "groups": Group,
        "nodes": NodePlan,
        "jobs": JobPlan,
        "schedules": SchedulePlan,
        "actions": Action,
        "faults": Fault,
    }
    parts = {
        name: [_made(kind, one) for one in values.get(name, ())] for name, kind in kinds.items()
    }
    return Plan(**{**values, **parts})


def read(path: Path) -> Plan:
    return load(path.read_text())


def _made(kind: Any, values: dict[str, Any]) -> Any:
    known = {one.name for one in fields(kind)}
    assert values.keys() <= known, f"{kind.__name__} has no {sorted(values.keys() - known)}"
    made = dict(values)
    for name in {"parents", "bodies"} & made.keys():
        made[name] = [tuple(one) for one in made[name]]
    return kind(**made)
