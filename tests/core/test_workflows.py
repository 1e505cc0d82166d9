import pytest

from backwave_django.core.jobs import EdgeMode
from backwave_django.core.states import Cause, JobState
from backwave_django.core.workflows import (
    Edge,
    RetryScope,
    Standing,
    WorkflowStatus,
    status_of,
    tally,
    to_retry,
)
from tests.builders import uid

GOOD = Standing(JobState.SUCCEEDED, Cause.RETURNED)
DEAD = Standing(JobState.DEAD_LETTERED, Cause.ATTEMPTS)
CASCADED = Standing(JobState.CANCELLED, Cause.PARENT)
STOPPED = Standing(JobState.CANCELLED, Cause.OPERATOR)
REPLACED = Standing(JobState.CANCELLED, Cause.SUPERSEDED)
ALIVE = Standing(JobState.LEASED, None)
FAILED, BELOW = RetryScope.FAILED, RetryScope.FAILED_AND_BELOW


@pytest.mark.parametrize(
    ("states", "status"),
    [
        ((), None),
        (("scheduled",), WorkflowStatus.RUNNING),
        (("awaiting", "succeeded"), WorkflowStatus.RUNNING),
        (("leased", "dead_lettered"), WorkflowStatus.FAILING),
        (("scheduled", "cancelled"), WorkflowStatus.FAILING),
        (("succeeded", "succeeded"), WorkflowStatus.SUCCEEDED),
        (("succeeded", "cancelled"), WorkflowStatus.CANCELLED),
        (("cancelled", "expired"), WorkflowStatus.FAILED),
        (("succeeded", "quarantined"), WorkflowStatus.FAILED),
        (("dead_lettered",), WorkflowStatus.FAILED),
    ],
)
def test_status_is_what_the_members_add_up_to(states, status):
    assert status_of(tally(map(JobState, states))) == status


def test_states_without_members_count_for_nothing():
    assert status_of({JobState.LEASED: 0, JobState.SUCCEEDED: 1}) == WorkflowStatus.SUCCEEDED


def chosen(members, *edges, scope=FAILED, outside=None):
    """The numbers of those that come back; an edge is a pair, or a triple with its mode."""
    ties = [Edge(uid(e[0]), uid(e[1]), e[2] if e[2:] else EdgeMode.ON_SUCCESS) for e in edges]
    standings = {uid(number): member for number, member in members.items()}
    states = {uid(number): state for number, state in (outside or {}).items()}
    return tuple(job_id.int for job_id in to_retry(standings, ties, states, scope=scope))


def test_failures_come_back_with_what_they_doomed_to_any_depth():
    members = {1: GOOD, 2: DEAD, 3: CASCADED, 4: CASCADED}
    assert chosen(members, (1, 2), (2, 3), (3, 4)) == (2, 3, 4)


def test_parents_come_before_their_children_whatever_their_ids():
    assert chosen({1: CASCADED, 9: DEAD}, (9, 1)) == (9, 1)


@pytest.mark.parametrize("state", [JobState.QUARANTINED, JobState.EXPIRED])
def test_every_kind_of_failure_comes_back(state):
    assert chosen({1: Standing(state, Cause.DEADLINE)}) == (1,)


def test_what_somebody_stopped_stays_stopped_with_all_that_it_doomed():
    members = {1: STOPPED, 2: CASCADED, 3: DEAD, 4: CASCADED}
    assert chosen(members, (1, 2), (3, 4), (1, 4)) == (3,)


def test_dead_parent_outside_of_the_workflow_keeps_a_member_down():
    members = {1: DEAD, 2: CASCADED}
    outside = {9: JobState.DEAD_LETTERED}
    assert chosen(members, (1, 2), (9, 2), outside=outside) == (1,)
    assert chosen(members, (1, 2), (9, 2), outside={9: JobState.SUCCEEDED}) == (1, 2)


def test_what_ran_after_a_failure_stays_unless_it_is_asked_for():
    members = {1: DEAD, 2: GOOD, 3: GOOD}
    edges = ((1, 2, EdgeMode.ON_ANY), (2, 3))
    assert chosen(members, *edges) == (1,)
    assert chosen(members, *edges, scope=BELOW) == (1, 2, 3)


def test_live_and_replaced_members_are_left_alone():
    members = {1: DEAD, 2: ALIVE, 3: REPLACED}
    edges = ((1, 2, EdgeMode.ON_ANY), (1, 3, EdgeMode.ON_ANY))
    assert chosen(members, *edges, scope=BELOW) == (1,)


def test_nothing_comes_back_where_nothing_failed():
    assert chosen({1: GOOD, 2: STOPPED}, (1, 2), scope=BELOW) == ()
