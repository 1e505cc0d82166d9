"""Clients: they enqueue the jobs of a plan, in batches, and their commits send hints."""

from collections import deque
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from backwave_django.core import events as e
from backwave_django.core.jobs import EdgeMode, IfDuplicate, LeasedJob, NewJob
from backwave_django.core.schedule_answers import DeclareMode
from backwave_django.core.schedules import Rule, ScheduleSpec
from backwave_django.core.workflows import NewWorkflow
from tests.simulation.plans import JobPlan, SchedulePlan

if TYPE_CHECKING:
    from tests.simulation.nodes import Node
    from tests.simulation.world import World

HINT_LATENCY = 0.005


def workflow_id(batch: int) -> UUID:
    """The id of the workflow that a batch of jobs is, if it is one."""
    return UUID(int=(1 << 80) + batch)


def _spec(plan: SchedulePlan) -> ScheduleSpec:
    return ScheduleSpec(
        name=plan.name,
        rule=Rule(every_seconds=plan.every),
        wire_name=plan.wire_name,
        queue=plan.queue,
        payload="{}",
        no_overlap=plan.no_overlap,
        catch_up=plan.catch_up,
    )


class Work:
    """The jobs of a plan on their way into the store. ``waiting`` batches were not taken yet."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._backlog: deque[list[int]] = deque()
        self._later = 0
        jobs = world.plan.jobs
        self.ids = {number: UUID(int=number + 1) for number in range(len(jobs))}

    @property
    def waiting(self) -> bool:
        return bool(self._backlog) or self._later > 0

    def begin(self) -> None:
        world = self._world
        specs = [_spec(schedule) for schedule in world.plan.schedules]
        world.store.declare_schedules(
            specs, owner="shop", release=None, mode=DeclareMode.CREATE, now=world.database_clock()
        )
        batches: dict[tuple[float, int], list[int]] = {}
        for number, job in enumerate(self._world.plan.jobs):
            batches.setdefault((job.at, job.batch), []).append(number)
        for (at, _), numbers in batches.items():
            self._later += 1
            self._world.after(at, partial(self._commit, numbers))

    def _commit(self, numbers: list[int]) -> None:
        self._later -= 1
        self._backlog.append(numbers)
        self._try()

    def _try(self) -> None:
        """Enqueue what is waiting, in order; a client whose store is down tries again."""
        world = self._world
        if world.weather.is_down(world.time):
            until = world.weather.down_until(world.time)
            if until != float("inf"):
                world.after(until - world.time + 0.01, self._try)
            return
        while self._backlog:
            self._enqueue(self._backlog.popleft())

    def _enqueue(self, numbers: list[int]) -> None:
        world = self._world
        batch = world.plan.jobs[numbers[0]].batch
        jobs = [self._new(number) for number in numbers]
        call = partial(world.store.enqueue, jobs)
        if batch in world.plan.workflows:
            workflow = NewWorkflow(id=workflow_id(batch), name="flow")
            jobs = [replace(job, workflow=workflow.id) for job in jobs]
            call = partial(world.store.start_workflow, workflow, jobs)
        answers = world.watch.perform("enqueue", call, now=world.database_clock(), request=jobs)
        for number, answer in zip(numbers, answers, strict=True):
            self.ids[number] = answer.id
            if not answer.created:
                world.reached("unique key answered with its holder")
        for lane in dict.fromkeys((job.queue, job.priority) for job in jobs):
            self._announce(e.DueHinted(queue=lane[0], priority=lane[1]))

    def _new(self, number: int) -> NewJob:
        plan, clock = self._world.plan.jobs[number], self._world.database_clock()
        return NewJob(
            id=UUID(int=number + 1),
            wire_name=plan.wire_name,
            queue=plan.queue,
            payload="{}",
            priority=plan.priority,
            due_at=None if plan.delay is None else clock + timedelta(seconds=plan.delay),
            deadline=None if plan.deadline is None else clock + timedelta(seconds=plan.deadline),
            limit_key=plan.limit_key,
            unique_key=plan.unique_key,
            if_duplicate=IfDuplicate(plan.if_duplicate),
            parents=self._parents(plan),
        )

    def _parents(self, plan: JobPlan) -> tuple[tuple[UUID, EdgeMode], ...]:
        return tuple((self.ids[number], EdgeMode(mode)) for number, mode in plan.parents)

    def story_of(self, job: LeasedJob) -> tuple[JobPlan, float]:
        """What a job is to do, and how much longer that takes than it should."""
        jobs, number = self._world.plan.jobs, job.job_id.int - 1
        if number < len(jobs):
            return jobs[number], self._world.weather.slowed(number, job.run)
        # The job of a tick, of which some overlap with the next one; of an observer; of a workflow
        # that was made anew.
        address = ("tick", job.schedule, str(job.scheduled_for))
        if job.schedule is None:
            address = ("other", None, str(job.job_id))
        share = self._world.plan.share(*address)
        kind = "raise" if share < 0.2 else "return"
        bodies = [(kind, round(0.05 + 8 * share**3, 3), True)]
        return JobPlan(at=0.0, wire_name=job.wire_name, bodies=bodies), 0.0

    # Hints

    def _announce(self, hint: e.Event) -> None:
        for node in self._world.nodes:
            self.send_hint(node, hint)

    def send_hint(self, node: "Node", hint: e.Event) -> None:
        """Send a hint on its way; nobody may need it to arrive."""
        world = self._world
        how = world.weather.hint(node.number, world.time)
        if how == "lost" or world.weather.is_cut_off(node.number, world.time):
            world.reached("hint lost")
            return
        late = how == "late"
        world.after(3.0 if late else HINT_LATENCY, lambda: node.tell(hint))
        if how == "doubled":
            world.after(2 * HINT_LATENCY, lambda: node.tell(hint))
        if how:
            world.reached(f"hint {how}")
