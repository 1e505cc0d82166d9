"""Operators: they cancel, requeue, pause, limit and slow down while everything runs."""

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

from backwave_django.core import events as e
from backwave_django.core.contract import Actor
from backwave_django.core.rates import Rate
from backwave_django.core.workflows import RetryScope
from tests.simulation.plans import Action
from tests.simulation.work import workflow_id

if TYPE_CHECKING:
    from tests.simulation.world import World

MINUTE = timedelta(minutes=1)
SCHEDULE_VERBS = {
    "pause schedule": "pause_schedule",
    "resume schedule": "resume_schedule",
    "trigger": "trigger_schedule",
}
BOUNDS = {"queue limit", "key limit", "pattern limit", "queue rate", "key rate", "window"}
ACTOR = Actor(name="operator", source="code")


class Operators:
    """The actions of a plan. While the store is down there is nothing to be done."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self.last_at = max((action.at for action in world.plan.actions), default=0.0)
        self.cancelled_at: dict[UUID, float] = {}

    def begin(self) -> None:
        for action in self._world.plan.actions:
            self._world.after(action.at, partial(self._act, action))

    def stop_schedules(self) -> None:
        """Pause all schedules, so that the work comes to an end."""
        for schedule in self._world.plan.schedules:
            self._perform(Action(at=0.0, kind="pause schedule", target=schedule.name))

    def _act(self, action: Action) -> None:
        world = self._world
        if world.weather.is_down(world.time):
            return
        self._perform(action)
        world.reached(f"operator: {action.kind}")
        if action.kind == "cancel":
            self.cancelled_at[world.work.ids[int(action.target)]] = world.time
        if action.kind in {"cancel", "cancel workflow"}:
            for node in world.nodes:
                world.work.send_hint(node, e.CancelHinted())

    def _perform(self, action: Action) -> None:
        now = self._world.database_clock()
        whole = action.kind.endswith(" workflow")
        call = self._workflow_call(action) if whole else self._call(action)
        self._world.watch.perform(action.kind, call, now=now, request=action)

    def _call(self, action: Action) -> Callable[[], Any]:
        store, now = self._world.store, self._world.database_clock()
        match action.kind:
            case "cancel" | "requeue" | "run now":
                job_id = self._world.work.ids[int(action.target)]
                verb = getattr(store, action.kind.replace(" ", "_"))
                return lambda: verb([job_id], actor=ACTOR, now=now)
            case "pause schedule" | "resume schedule" | "trigger":
                verb = getattr(store, SCHEDULE_VERBS[action.kind])
                return lambda: verb(action.target, actor=ACTOR, now=now)
            case "pause":
                until = now + timedelta(seconds=action.value or 1.0)
                return lambda: store.pause(action.target, until=until, actor=ACTOR, now=now)
            case (
                "queue limit" | "key limit" | "pattern limit" | "queue rate" | "key rate" | "window"
            ):
                return partial(self._bound, action, now=now)
            case _:
                pump_id = self._world.nodes[int(action.target)].pump_id
                return lambda: store.request_drain(pump_id, actor=ACTOR, now=now)

    def _bound(self, action: Action, *, now: datetime) -> None:
        """Set what bounds a queue or a key."""
        store, target, number = self._world.store, action.target, int(action.value or 1)
        match action.kind:
            case "queue limit":
                store.set_queue_limit(target, number, actor=ACTOR, now=now)
            case "key limit" | "pattern limit":
                store.set_limit(target, number, actor=ACTOR, now=now)
            case "queue rate":
                store.set_queue_rate(target, Rate(number, 2, "second"), actor=ACTOR, now=now)
            case "key rate":
                store.set_rate(target, Rate(number, 2, "second"), actor=ACTOR, now=now)
            case _:
                # Closed for what is left of this minute, and for this minute of each day.
                text = f"{now + MINUTE:%H:%M}-{now:%H:%M} UTC"
                store.set_window(target, text, actor=ACTOR, now=now)

    def _workflow_call(self, action: Action) -> Callable[[], Any]:
        world, now = self._world, self._world.database_clock()
        target, store = workflow_id(int(action.target)), world.store
        match action.kind:
            case "cancel workflow":
                return lambda: store.cancel_workflow(target, actor=ACTOR, now=now)
            case "retry workflow":
                scope = RetryScope.FAILED_AND_BELOW if action.value else RetryScope.FAILED
                return lambda: store.retry_workflow(target, scope=scope, actor=ACTOR, now=now)
            case _:
                return lambda: store.restart_workflow(
                    target, new_id=world.draw_id, actor=ACTOR, now=now
                )
