"""Clients that enqueue, one process each: single jobs, bulks, graphs, and what is rolled back."""

import uuid
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, NoReturn

from django.db import connection, transaction

import backwave_django as backwave
from backwave_django.core.errors import UnknownParent
from backwave_django.core.jobs import EdgeMode, IfDuplicate, NewJob
from backwave_django.core.states import TERMINAL
from backwave_django.jobs.ids import new_id
from backwave_django.models import Job
from backwave_django.store import default_store
from tests.torture import jobs
from tests.torture.journal import Journal
from tests.torture.loops import EXPECTED, Random, Stop, choose, rounds, tried

#: Under one kind of key one policy is used, so that the audit knows what must hold.
POLICIES = {
    "after-failure": IfDuplicate.ALLOW_AFTER_FAILURE,
    "reject": IfDuplicate.REJECT,
    "replace": IfDuplicate.REPLACE,
}
ACTS = dict(
    zip(jobs.ACTS, (30, 14, 8, 6, 8, 3, 3, 4, 3, 8, 4), strict=True),
    refuse=2,
)
QUEUES = ("plain", "plain", "capped", "swing", "lazy")
#: Rows that no job type can begin: which wire name, and which payload.
RAW = (
    ("torture.never_heard_of", '{"args":[],"kwargs":{}}'),
    ("torture.work", '{"args":[],"kwargs":{"no_such":1}}'),
    ("torture.work", '{"args":'),
)

Handle = backwave.JobHandle[Any]


def has_room(backlog: int) -> bool:
    """Tell whether fewer jobs than that live: pumps have to come to rest in the end."""
    live = tried(lambda: Job.objects.exclude(state__in=TERMINAL).count())
    return live is not None and live < backlog


class RolledBack(Exception):
    """Raised to leave a transaction without committing it."""


class Enqueuer:
    """One client. What it asks for and what it hears goes into the journal."""

    def __init__(self, name: str, rng: Random, *, backlog: int, deadly: bool = False) -> None:
        self._name = name
        self._rng = rng
        self._backlog = backlog
        self._journal = Journal.current()
        self._number = 0
        self._known: list[uuid.UUID] = []
        self._ways: dict[Callable[[], None], float] = {
            self.single: 35,
            self.bulk: 15,
            self.together: 12,
            self.rolled_back: 10,
            self.partly_rolled_back: 4,
            self.family: 14,
            self.late_child: 6,
            self.workflow: 3,
            self.raw: 1.5,
            **({self.fatal: 0.5} if deadly else {}),
        }

    def run(self, stop: Stop) -> None:
        """Enqueue until told to stop, with some restraint while many jobs wait."""
        for _ in rounds(stop, self._rng, longest=0.08):
            if not has_room(self._backlog):
                continue
            self._asked: list[str] = []
            try:
                choose(self._rng, self._ways)()
            except UnknownParent:
                self._end("refused")  # it was rolled back, or its commit was never confirmed
            except EXPECTED as error:
                self._end("unknown", error=repr(error))
                connection.close()
            except Exception as error:
                self._end("unknown", error=repr(error))
                self._journal.write("enqueue.broke", error=repr(error))
                connection.close()

    def _end(self, how: str, **more: object) -> None:
        for label in self._asked:
            self._journal.write(f"enqueue.{how}", label=label, **more)

    def _label(self, **told: object) -> str:
        """Name a job before it is asked for."""
        self._number += 1
        label = f"{self._name}-{self._number}"
        self._journal.write("enqueue.asked", label=label, **told)
        self._asked.append(label)
        return label

    def _committed(self, label: str, handle: Handle) -> None:
        self._asked.remove(label)
        self._journal.write("enqueue.committed", label=label, job=handle.id, created=handle.created)
        self._known = [*self._known[-50:], handle.id]

    def _options(self, *, keyed: bool = True) -> dict[str, Any]:
        """Options of one job; a tenth has a unique key."""
        rng, options = self._rng, dict[str, Any]()
        if rng.random() < 0.2:
            options["delay"] = timedelta(seconds=rng.uniform(0, 2))
        if rng.random() < 0.15:
            options["deadline"] = timedelta(seconds=rng.choice((0.05, 0.5, 3.0)))
        if rng.random() < 0.3:
            options["priority"] = rng.choice((-100, -1, 1, 100))
        if keyed and rng.random() < 0.1:
            policy = rng.choice(list(POLICIES))
            options |= {"unique": f"{policy}-{rng.randrange(40)}", "if_duplicate": POLICIES[policy]}
        return options

    def _draw(self, **more: Any) -> tuple[str, backwave.BoundOptions[..., Any], tuple[Any, ...]]:
        """Draw a job: its label, what enqueues it, and its arguments."""
        rng = self._rng
        kind = rng.choice(jobs.JOB_TYPES)
        act = choose(rng, ACTS)
        options = self._options() | more
        if kind in {jobs.work, jobs.once}:
            options["queue"] = rng.choice(QUEUES)
        label = self._label(act=act, unique=options.get("unique"))
        seconds = round(rng.uniform(0.01, 0.25), 3)
        return label, kind.options(tags={"label": label}, **options), (act, seconds)

    def _insert(self, count: int = 1, **more: Any) -> list[tuple[str, Handle]]:
        drawn = [self._draw(**more) for _ in range(count)]
        return [(label, bound.enqueue(*args)) for label, bound, args in drawn]

    def _all_committed(self, made: Sequence[tuple[str, Handle]]) -> None:
        for label, handle in made:
            self._committed(label, handle)

    def single(self) -> None:
        """One job, on its own."""
        self._all_committed(self._insert())

    def bulk(self) -> None:
        """Many in one statement."""
        act, keys = choose(self._rng, ACTS), self._options(keyed=False)
        count = self._rng.choice((2, 5, 20, 60))
        # The label is an option, and options are of the whole bulk: each job finds its own in it.
        label = self._label(act=act, bulk=count)
        bound = jobs.work.options(tags={"label": label}, queue=self._rng.choice(QUEUES), **keys)
        handles = bound.enqueue_many([(act, 0.02)] * count)
        self._asked.remove(label)
        ids = [handle.id for handle in handles]
        self._journal.write("enqueue.committed", label=label, jobs=ids, created=True)

    def together(self) -> None:
        """Some in a transaction that commits."""
        with transaction.atomic():
            made = self._insert(self._rng.randrange(2, 6))
        self._all_committed(made)

    def rolled_back(self) -> None:
        """Some in a transaction that does not commit."""
        try:
            with transaction.atomic():
                self._insert(self._rng.randrange(1, 5))
                _roll_back()
        except RolledBack:
            self._end("rolled_back")

    def partly_rolled_back(self) -> None:
        """Some outside, some inside a savepoint that is rolled back."""
        with transaction.atomic():
            kept = self._insert(2)
            inside = len(self._asked)
            try:
                with transaction.atomic():
                    self._insert(2)
                    _roll_back()
            except RolledBack:
                lost, self._asked = self._asked[inside:], self._asked[:inside]
        for label in lost:
            self._journal.write("enqueue.rolled_back", label=label)
        self._all_committed(kept)

    def family(self) -> None:
        """Parents, children, and children of children, one by one in a transaction."""
        with transaction.atomic():
            made = self._insert(self._rng.randrange(1, 4))
            for _ in range(self._rng.randrange(1, 5)):
                parents = self._rng.sample(made, min(len(made), self._rng.randrange(1, 3)))
                made += self._child([handle.id for _label, handle in parents])
        self._all_committed(made)

    def late_child(self) -> None:
        """A child of what was committed a while ago, and may be ending just now."""
        if self._known:
            count = min(len(self._known), self._rng.randrange(1, 3))
            self._all_committed(self._child(self._rng.sample(self._known, count)))

    def _child(self, parents: Sequence[uuid.UUID]) -> list[tuple[str, Handle]]:
        mode = self._rng.choice((EdgeMode.ON_SUCCESS, EdgeMode.ON_SUCCESS, EdgeMode.ON_ANY))
        return self._insert(after=list(parents), after_mode=mode)

    def workflow(self) -> None:
        """A named chain, inserted whole."""
        made: list[tuple[str, Handle]] = []
        with backwave.workflow("torture") as flow:
            for _ in range(3):
                act = choose(self._rng, ACTS)
                label = self._label(act=act)
                bound = jobs.work.options(tags={"label": label})
                made.append((label, flow.add(bound.s(act, 0.02), after=[h for _t, h in made[-1:]])))
        for label, handle in made:
            self._asked.remove(label)
            self._journal.write("enqueue.committed", label=label, job=handle.id, created=True)

    def fatal(self) -> None:
        """One that nobody survives who runs it."""
        label = self._label(act="die")
        self._committed(label, jobs.fatal.options(tags={"label": label}).enqueue())

    def raw(self) -> None:
        """A row that no code of ours would write."""
        wire_name, payload = self._rng.choice(RAW)
        label = self._label(act="raw")
        job = NewJob(
            id=new_id(),
            wire_name=wire_name,
            queue="plain",
            payload=payload,
            tags=f'{{"label": "{label}"}}',
        )
        (answer,) = default_store().enqueue([job])
        self._committed(label, backwave.JobHandle(answer.id, created=answer.created))


def _roll_back() -> NoReturn:
    raise RolledBack
