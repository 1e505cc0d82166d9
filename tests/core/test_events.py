from backwave_django.core import events as e
from tests.core.drivers import IDLE, TICK, raised, returned


def test_ends_in_a_row_are_told_as_one_event_and_nothing_changes_places():
    told = e.together([TICK, returned(1), raised(2), IDLE, returned(3)])
    assert told == [
        TICK,
        e.AttemptsEnded((returned(1), raised(2))),
        IDLE,
        e.AttemptsEnded((returned(3),)),
    ]


def test_nothing_is_told_of_nothing():
    assert e.together([]) == []
