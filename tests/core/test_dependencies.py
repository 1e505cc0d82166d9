import pytest

from backwave_django.core.dependencies import (
    Birth,
    birth,
    is_dead,
    is_over,
    parents_first,
    released_due,
)
from backwave_django.core.errors import InvalidOption
from backwave_django.core.jobs import EdgeMode
from backwave_django.core.states import TERMINAL, JobState
from tests.builders import HOUR, T0, uid

WANTED, ANY = EdgeMode.ON_SUCCESS, EdgeMode.ON_ANY
LIVE, GOOD, BAD = JobState.LEASED, JobState.SUCCEEDED, JobState.DEAD_LETTERED


def order(*numbers, **parents):
    """The order of jobs 1, 2, ...; ``c3=(1,)`` says that job 3 waits for job 1."""
    named = {uid(int(child[1:])): tuple(map(uid, them)) for child, them in parents.items()}
    return tuple(each.int for each in parents_first(tuple(map(uid, numbers)), parents=named))


@pytest.mark.parametrize("state", [None, *JobState])
def test_parent_is_over_when_it_is_terminal_or_gone(state):
    assert is_over(state) is (state is None or state in TERMINAL)


@pytest.mark.parametrize("state", [None, *JobState])
def test_edge_that_wants_a_success_is_dead_once_none_can_come(state):
    no_success_can_come = state is None or state in TERMINAL - {JobState.SUCCEEDED}
    assert is_dead(WANTED, state) is no_success_can_come
    assert is_dead(ANY, state) is False


@pytest.mark.parametrize(
    ("edges", "expected"),
    [
        ((), Birth(state=JobState.SCHEDULED, pending=0)),
        (((WANTED, GOOD), (ANY, BAD)), Birth(state=JobState.SCHEDULED, pending=0)),
        (((WANTED, LIVE), (ANY, LIVE), (ANY, GOOD)), Birth(state=JobState.AWAITING, pending=2)),
        (((WANTED, BAD),), Birth(state=JobState.CANCELLED, pending=0)),
        (((WANTED, LIVE), (WANTED, None)), Birth(state=JobState.CANCELLED, pending=1)),
    ],
)
def test_job_begins_as_its_parents_let_it(edges, expected):
    assert birth(edges) == expected


def test_job_that_stops_waiting_is_due_as_asked_but_not_in_the_past():
    assert released_due(T0 - HOUR, now=T0) == T0
    assert released_due(T0 + HOUR, now=T0) == T0 + HOUR


def test_order_without_edges_is_that_of_the_request():
    assert order(3, 1, 2) == (3, 1, 2)


def test_repeated_ids_are_named_once():
    assert order(2, 1, 2, 1) == (2, 1)


def test_every_parent_comes_before_its_children():
    assert order(1, 2, 3, c1=(2,), c2=(3,)) == (3, 2, 1)


def test_parents_outside_of_the_choice_do_not_matter():
    assert order(1, 2, c1=(9,), c9=(1,)) == (1, 2)


@pytest.mark.parametrize("parents", [{"c1": (1,)}, {"c1": (2,), "c2": (3,), "c3": (1,)}])
def test_circle_is_refused_by_name(parents):
    with pytest.raises(InvalidOption) as refusal:
        order(1, 2, 3, **parents)
    assert refusal.value.option == "parents"
    assert str(uid(1)) in str(refusal.value)
