"""What a pump remembers of lanes, and for how long."""

from datetime import timedelta

from backwave_django.store.lanes import Lane, LaneMemory, Survey
from tests.builders import SECOND, T0, uid

MS = timedelta(milliseconds=1)


def survey(*lanes: Lane, limited: frozenset[str] = frozenset(), cost: timedelta = MS) -> Survey:
    return Survey(list(lanes), limited, whole=True, clock=T0, cost=cost)


def lane(queue: str = "a", priority: int = 0, *, key: str | None = None) -> Lane:
    return Lane(queue, priority, key, T0)


def remembered(memory: LaneMemory, *queues: str, at: timedelta = MS) -> list[tuple[str, int]]:
    return [(each.queue, each.priority) for each in memory.known(queues, now=T0 + at)]


def test_lanes_come_in_the_order_of_the_queues_and_then_urgent_first() -> None:
    memory = LaneMemory()
    memory.learn(("a", "b"), survey(lane("a", 5), lane("a", -5), lane("b", 0)), now=T0)
    assert remembered(memory, "b", "a") == [("b", 0), ("a", -5), ("a", 5)]


def test_lanes_are_trusted_for_a_second() -> None:
    memory = LaneMemory()
    memory.learn(("a",), survey(lane()), now=T0)
    assert remembered(memory, "a", at=SECOND - MS) == [("a", 0)]
    assert remembered(memory, "a", at=SECOND) == []


def test_lanes_are_trusted_for_longer_when_looking_is_dear() -> None:
    memory = LaneMemory()
    memory.learn(("a",), survey(lane(), cost=SECOND), now=T0)
    assert remembered(memory, "a", at=20 * SECOND - MS) == [("a", 0)]
    assert remembered(memory, "a", at=20 * SECOND) == []


def test_unknown_queue_wants_a_survey() -> None:
    memory = LaneMemory()
    memory.learn(("a",), survey(lane()), now=T0)
    assert remembered(memory, "a", "b") == []


def test_limits_and_keys_want_a_survey() -> None:
    memory = LaneMemory()
    memory.learn(("a",), survey(lane(), limited=frozenset({"a"})), now=T0)
    assert remembered(memory, "a") == []
    memory.learn(("a",), survey(lane(), lane(key="k")), now=T0)
    assert remembered(memory, "a") == []
    memory.learn(("a",), survey(lane()), now=T0)
    assert remembered(memory, "a") == [("a", 0)]


def test_quiet_queue_wants_a_survey_until_a_hint_comes() -> None:
    memory = LaneMemory()
    memory.learn(("a",), survey(Lane("a", 0, None, T0 + SECOND)), now=T0)
    assert remembered(memory, "a") == []
    memory.hint([("a", 7), ("b", 0)], queues=("a",))
    assert remembered(memory, "a") == [("a", -7), ("a", 0)]


def test_hint_about_a_quiet_queue_is_believed_once_however_old_the_survey_is() -> None:
    memory = LaneMemory()
    memory.learn(("a", "b"), survey(), now=T0)
    memory.hint([("a", 7)], queues=("a", "b"))
    assert remembered(memory, "a", "b", at=60 * SECOND) == [("a", -7)]
    memory.hint([("a", 7)], queues=("a", "b"))
    assert remembered(memory, "a", "b", at=60 * SECOND) == []


def test_hint_about_a_queue_with_a_backlog_needs_a_survey_as_ever() -> None:
    memory = LaneMemory()
    memory.learn(("a", "b"), survey(lane("a")), now=T0)
    memory.hint([("a", 7)], queues=("a", "b"))
    assert remembered(memory, "a", "b", at=60 * SECOND) == []
    memory.learn(("a", "b"), survey(lane("a")), now=T0)
    memory.hint([("b", 7)], queues=("a", "b"))
    assert remembered(memory, "a", "b", at=60 * SECOND) == []


def test_floor_is_the_last_claimed_row_until_the_next_survey() -> None:
    memory = LaneMemory()
    memory.learn(("a",), survey(lane()), now=T0)
    lowest = memory.floor(lane())
    memory.claimed({("a", 0): (T0, uid(7))}, full=True)
    assert memory.floor(lane()) == (T0, uid(7))
    memory.learn(("a",), survey(lane()), now=T0)
    assert memory.floor(lane()) == lowest


def test_floor_of_an_unknown_lane_is_not_kept() -> None:
    memory = LaneMemory()
    memory.claimed({("a", 0): (T0, uid(7))}, full=True)
    assert memory.floors == {}


def test_lane_that_filled_a_claim_alone_is_claimed_alone_until_it_does_not() -> None:
    memory = LaneMemory()
    memory.learn(("a", "b"), survey(lane("a"), lane("b")), now=T0)
    assert remembered(memory, "a", "b") == [("a", 0), ("b", 0)]
    memory.claimed({("a", 0): (T0, uid(7))}, full=True)
    assert remembered(memory, "a", "b") == [("a", 0)]
    # Something more urgent turned up, or another order is asked for.
    memory.hint([("a", 7)], queues=("a", "b"))
    assert remembered(memory, "a", "b") == [("a", -7), ("a", 0), ("b", 0)]
    assert remembered(memory, "b", "a") == [("b", 0), ("a", -7), ("a", 0)]
    for last, full in (
        ({("a", -7): (T0, uid(8))}, False),
        ({("a", -7): (T0, uid(8)), ("a", 0): (T0, uid(9))}, True),
        ({}, False),
    ):
        memory.claimed(last, full=full)
        assert remembered(memory, "a", "b") == [("a", -7), ("a", 0), ("b", 0)]
