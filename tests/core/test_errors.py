"""What errors say, and what they carry for whoever catches them."""

from datetime import timedelta

import pytest

from backwave_django.core import errors
from backwave_django.core.contract import ReportAnswer
from tests.builders import T0, uid

ONE, TWO = uid(1), uid(2)
SAID = [
    (errors.UnserializableValue("args[0]", "a lock"), "args[0]: a lock"),
    (
        errors.UnserializableValue("args[0]", "a lock", "pass a name"),
        "args[0]: a lock; pass a name",
    ),
    (
        errors.PayloadTooLarge("the payload", 70_000, 65_536),
        (
            "the payload is 70,000 bytes, over the cap of 65,536; "
            "store the data elsewhere and pass a reference to it"
        ),
    ),
    (errors.WrongArguments("shop.pack", "missing 'order'"), "job 'shop.pack': missing 'order'"),
    (errors.InvalidOption("priority", 900, "write -100 to 100"), "priority=900: write -100 to 100"),
    (
        errors.DuplicateWireName("shop.pack", "shop.a", "shop.b"),
        (
            "wire name 'shop.pack' is declared by shop.a and again by shop.b; "
            'give one of them a name of its own: @backwave.job("app.other_name")'
        ),
    ),
    (errors.UnknownJobType("shop.pak"), "no job type is registered as 'shop.pak'"),
    (
        errors.UnknownJobType("shop.pak", ["shop.pack", "shop.peak"]),
        "no job type is registered as 'shop.pak'; did you mean 'shop.pack' or 'shop.peak'?",
    ),
    (errors.UnknownParent([ONE, TWO]), f"no such parent job: {ONE}, {TWO}"),
    (errors.WorkflowGone(ONE), f"workflow {ONE} is gone: purged, rolled back, or never stored"),
    (errors.JobGone(ONE), f"job {ONE} is gone: purged, rolled back, or never stored"),
    (errors.ConfigurationError("POOL_SIZE is 0."), "POOL_SIZE is 0."),
    (errors.ConfigurationError("POOL_SIZE is 0.", "Write 1."), "POOL_SIZE is 0. Write 1."),
    (errors.UndecodablePayload("no JSON"), "no JSON"),
    (errors.RetryAfter(timedelta(seconds=3)), "retry after 0:00:03"),
    (errors.RetryAfter(timedelta(seconds=3), "too many"), "too many"),
    (errors.Snooze(timedelta(minutes=1)), "snoozed for 0:01:00"),
    (errors.GiveUp(), "gave up"),
    (errors.GiveUp("no such order"), "no such order"),
]


@pytest.mark.parametrize(("error", "said"), SAID, ids=[type(error).__name__ for error, _ in SAID])
def test_an_error_says_what_is_wrong_and_what_to_do(error, said):
    assert str(error) == said
    assert isinstance(error, errors.BackwaveError)


@pytest.mark.parametrize(
    ("error", "kept"),
    [
        (SAID[1][0], {"path": "args[0]", "problem": "a lock", "hint": "pass a name"}),
        (SAID[2][0], {"what": "the payload", "size": 70_000, "cap": 65_536}),
        (errors.UnknownParent([ONE, TWO]), {"missing": (ONE, TWO)}),
        (errors.RetryAfter(timedelta(seconds=3)), {"delay": timedelta(seconds=3)}),
        (errors.Snooze(timedelta(minutes=1)), {"delay": timedelta(minutes=1)}),
        (errors.GiveUp(), {"reason": ""}),
    ],
    ids=["value", "size", "parents", "retry", "snooze", "give up"],
)
def test_an_error_carries_what_it_is_about(error, kept):
    assert {name: getattr(error, name) for name in kept} == kept


@pytest.mark.parametrize(
    ("kind", "standard"),
    [
        (errors.UnserializableValue, TypeError),
        (errors.PayloadTooLarge, ValueError),
        (errors.WrongArguments, TypeError),
        (errors.UnknownJobType, LookupError),
        (errors.JobGone, LookupError),
        (errors.WaitTimeout, TimeoutError),
    ],
)
def test_an_error_is_also_of_the_kind_that_python_would_raise(kind, standard):
    assert issubclass(kind, standard)


def test_a_turn_whose_claim_failed_keeps_what_was_reported():
    answer, fault = ReportAnswer(rows=(), clock=T0), errors.StoreUnavailable("connection lost")
    error = errors.TurnFailed(answer, fault)
    assert (str(error), error.answer, error.fault) == ("connection lost", answer, fault)


def test_a_time_out_that_is_raised_passes_by_who_catches_exceptions():
    assert not issubclass(errors.JobTimedOut, Exception)
    assert str(errors.JobTimedOut()) == "the attempt ran past its time-out"
