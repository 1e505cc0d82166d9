import pytest

from backwave_django.core.states import (
    CANCELLABLE,
    REQUEUEABLE,
    TERMINAL,
    TRANSITIONS,
    JobState,
    is_legal,
)

S, A, L = JobState.SCHEDULED, JobState.AWAITING, JobState.LEASED
OK, DEAD, QUAR = JobState.SUCCEEDED, JobState.DEAD_LETTERED, JobState.QUARANTINED
EXP, CAN = JobState.EXPIRED, JobState.CANCELLED

#: Written out a second time, from the specification, so that a slip in the table shows.
LEGAL = {
    *((None, S), (None, A), (None, CAN)),
    *((S, L), (S, EXP), (S, DEAD), (S, CAN)),
    *((A, S), (A, CAN)),
    *((L, S), (L, OK), (L, DEAD), (L, QUAR), (L, CAN)),
    *((before, after) for before in (OK, DEAD, QUAR, EXP, CAN) for after in (S, A)),
}


@pytest.mark.parametrize("before", [None, *JobState])
@pytest.mark.parametrize("after", JobState)
def test_a_step_is_legal_exactly_when_the_specification_lists_it(before, after):
    assert is_legal(before, after) is ((before, after) in LEGAL)


def test_every_state_has_its_row_in_the_table():
    assert set(TRANSITIONS) == {None, *JobState}


def test_terminal_states_are_the_last_five():
    assert frozenset({OK, DEAD, QUAR, EXP, CAN}) == TERMINAL


def test_terminal_states_lead_only_to_a_new_beginning():
    assert {after for before in TERMINAL for after in TRANSITIONS[before]} == {S, A}


def test_everything_terminal_but_a_success_may_be_requeued():
    assert frozenset({DEAD, QUAR, EXP, CAN}) == REQUEUEABLE


def test_what_waits_may_be_cancelled_on_the_spot():
    assert frozenset({S, A}) == CANCELLABLE
    assert all(is_legal(state, CAN) for state in CANCELLABLE)
