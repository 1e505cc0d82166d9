"""Further rules: workflows as a whole, and observers of every end of some job types."""

from collections import Counter
from dataclasses import replace
from itertools import count
from typing import Any
from uuid import UUID

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from backwave_django import models
from backwave_django.core.jobs import NewJob
from backwave_django.core.observing import Ended
from backwave_django.core.states import TERMINAL, JobState
from backwave_django.core.workflows import NewWorkflow, RetryScope
from tests import builders as b
from tests.conformance.machine import Differential, new_jobs

OBSERVED = "shop.once"


class Counting:
    """Observes one job type. The id of its jobs says which end of which job they are about."""

    def __init__(self) -> None:
        self.states: frozenset[JobState] = TERMINAL - {JobState.EXPIRED}
        self._ends: Counter[UUID] = Counter()

    def jobs(self, ended: Ended) -> tuple[NewJob, ...]:
        if ended.wire_name != OBSERVED:
            return ()
        self._ends[ended.job_id] += 1
        number = 10**9 * self._ends[ended.job_id] + ended.job_id.int
        told = ended._replace(tags="")
        return (b.new_job(number, wire_name="shop.other", payload=repr(told), due_at=None),)


class Flows(Differential):
    """Everything that ``Differential`` does, with observers and workflows."""

    def __init__(self) -> None:
        super().__init__()
        models.Workflow._default_manager.all()._raw_delete("default")
        self.flows: list[UUID] = []
        for tables in (self.rivals.ours.tables, self.rivals.theirs._room):
            tables.settings = replace(tables.settings, observers=Counting())

    @rule(batch=st.lists(new_jobs, min_size=2, max_size=5))
    def start(self, batch: list[dict[str, Any]]) -> None:
        flow = b.uid(500 + len(self.flows))
        jobs: list[NewJob] = []
        for options in batch:
            siblings = [job.id for job in jobs]
            jobs.append(replace(self.new_job(options, siblings), workflow=flow))
        workflow = NewWorkflow(id=flow, name="flow", steps={"first": jobs[0].id})
        self.rivals.both(lambda store: store.start_workflow(workflow, jobs))
        self.take_up(job.id for job in jobs)
        self.flows.append(flow)

    @precondition(lambda self: self.flows)
    @rule(pick=st.integers(0, 30))
    def cancel_flow(self, pick: int) -> None:
        flow = self.flow(pick)
        self.rivals.both(lambda s: s.cancel_workflow(flow, actor=b.ACTOR, now=self.now))

    @precondition(lambda self: self.flows)
    @rule(pick=st.integers(0, 30), scope=st.sampled_from(RetryScope))
    def retry_flow(self, pick: int, scope: RetryScope) -> None:
        flow = self.flow(pick)
        self.rivals.both(lambda s: s.retry_workflow(flow, scope=scope, actor=b.ACTOR, now=self.now))

    @precondition(lambda self: self.flows)
    @rule(pick=st.integers(0, 30))
    def restart_flow(self, pick: int) -> None:
        flow, first = self.flow(pick), 100_000 + 100 * next(self.numbers)

        def restart(store: Any) -> Any:
            ids = count(first)
            return store.restart_workflow(
                flow, new_id=lambda: b.uid(next(ids)), actor=b.ACTOR, now=self.now
            )

        answer = self.rivals.both(restart)
        self.take_up(answer.jobs)
        if answer.restarted_as is not None:
            self.flows.append(answer.restarted_as)

    def flow(self, pick: int) -> UUID:
        known = [*self.flows, b.uid(404)]
        return known[-1 - pick % len(known)]
