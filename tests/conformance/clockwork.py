"""Rules about schedules, on top of those about the jobs that they make."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from backwave_django.core.contract import ScheduleAnswer, Store
from backwave_django.core.schedule_answers import DeclareMode
from backwave_django.core.schedules import CatchUp, Decision, Rule, ScheduleSpec, decide
from tests import builders as b
from tests.conformance.machine import RivalMachine

names = st.sampled_from(("Tidy", "nightly", "tidy"))
specs = st.builds(
    lambda name, rule, **options: b.schedule_spec(name, rule=rule, **options),
    names,
    st.sampled_from(
        (
            *(Rule(every_seconds=seconds) for seconds in (1.0, 60.0, 3600.0)),
            *(Rule(cron="*/5 * * * *"), Rule(cron="30 2 * * *", timezone="Europe/Zurich")),
        )
    ),
    catch_up=st.sampled_from(CatchUp),
    no_overlap=st.booleans(),
    priority=st.sampled_from((0, 50)),
    tags=st.sampled_from(("{}", '{"a": "1"}')),
)


class Clockwork(RivalMachine):
    """Schedules declared, minted, edited and switched while their jobs come and go."""

    def __init__(self) -> None:
        super().__init__()
        self.earlier: list[Decision] = []

    @initialize(declared=st.lists(specs, min_size=1, max_size=3, unique_by=lambda s: s.name))
    def begin(self, declared: list[ScheduleSpec]) -> None:
        """There is something that ticks from the first step on."""
        self.declare_all(declared, release=None, mode=DeclareMode.SYNC)

    @rule(
        declared=st.lists(specs, max_size=3, unique_by=lambda s: s.name),
        release=st.none() | st.integers(1, 3),
        mode=st.sampled_from(DeclareMode),
    )
    def declare(self, declared: list[ScheduleSpec], release: int | None, mode: DeclareMode) -> None:
        self.declare_all(declared, release=release, mode=mode)

    def declare_all(
        self, declared: list[ScheduleSpec], *, release: int | None, mode: DeclareMode
    ) -> None:
        self.rivals.both(
            lambda store: store.declare_schedules(
                declared, owner="shop", release=release, mode=mode, now=self.now
            )
        )

    @rule(span=st.sampled_from((b.SECOND, b.MINUTE, b.HOUR, b.DAY)), late=st.booleans())
    def tick(self, span: timedelta, *, late: bool) -> None:
        """A pump looks at schedules and mints; a late one has seen them as they were before."""
        self.rivals.pass_time(span)
        loaded = self.rivals.both(
            lambda store: store.load_schedules(after="", limit=2),
            lambda answer: (answer.schedules, answer.full),
        )
        found = [decide(schedule, now=self.now) for schedule in loaded.schedules]
        decisions = [one for one in found if one is not None]
        if late:
            decisions, self.earlier = self.earlier, decisions
        self.take_up(self.rivals.mint(decisions))

    @rule(which=st.integers(0, 4), name=names, spec=specs)
    def operate(self, which: int, name: str, spec: ScheduleSpec) -> None:
        audit: dict[str, Any] = {"actor": b.ACTOR, "now": self.now}
        acts: tuple[Callable[[Store], ScheduleAnswer], ...] = (
            lambda store: store.save_schedule(spec, **audit),
            lambda store: store.delete_schedule(name, **audit),
            lambda store: store.trigger_schedule(name, **audit),
            lambda store: store.pause_schedule(name, **audit),
            lambda store: store.resume_schedule(name, **audit),
        )
        made: list[UUID] = self.rivals.operate_schedule(acts[which])
        self.take_up(made)
