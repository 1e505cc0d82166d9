from datetime import timedelta
from math import inf
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from backwave_django.core.retries import MOST_ATTEMPTS, Retry, RetryTable, due_after, due_after_loss
from tests.builders import HOUR, MINUTE, SECOND, T0, uid

JOB = uid(1)


def policies() -> st.SearchStrategy[Retry]:
    """Any policy that is valid."""
    return st.builds(
        lambda most, initial, multiplier, more, jitter: Retry(
            max_attempts=most,
            initial=initial,
            multiplier=multiplier,
            maximum=initial + more,
            jitter=jitter,
        ),
        st.integers(1, MOST_ATTEMPTS),
        st.timedeltas(timedelta(0), timedelta(days=30)),
        st.floats(1, 1000),
        st.timedeltas(timedelta(0), timedelta(days=365)),
        st.floats(0, 1),
    )


def plain(**options):
    values: dict[str, Any] = {"initial": 10 * SECOND, "multiplier": 3.0, "jitter": 0.0}
    return Retry(**(values | options))


def test_f160_waits_grow_by_the_multiplier_up_to_the_maximum():
    waits = [plain().delay(job_id=JOB, attempt=attempt) for attempt in range(1, 9)]
    assert waits == [
        *(SECOND * seconds for seconds in (10, 30, 90, 270, 810, 2430)),
        HOUR,
        HOUR,
    ]


def test_very_late_attempt_waits_for_the_maximum():
    assert plain().delay(job_id=JOB, attempt=30_000) == HOUR


@pytest.mark.parametrize(("multiplier", "attempt"), [(1.125, 274), (1.1, 31_999), (1e300, 7)])
def test_power_that_no_number_holds_is_a_wait_for_the_maximum(multiplier, attempt):
    assert plain(multiplier=multiplier).delay(job_id=JOB, attempt=attempt) == HOUR


def test_multiplier_of_one_always_waits_equally_long():
    policy = plain(multiplier=1.0)
    assert {policy.delay(job_id=JOB, attempt=n) for n in (1, 2, 500, 5_000)} == {10 * SECOND}


def test_initial_of_zero_never_waits():
    policy = plain(initial=timedelta(0))
    assert [policy.delay(job_id=JOB, attempt=n) for n in (1, 7)] == [timedelta(0)] * 2


@given(policies(), st.uuids(), st.integers(1, MOST_ATTEMPTS))
def test_wait_is_never_negative_and_never_past_the_maximum(policy, job_id, attempt):
    assert timedelta(0) <= policy.delay(job_id=job_id, attempt=attempt) <= policy.maximum


@given(st.uuids(), st.integers(1, 7))
def test_jitter_moves_a_wait_by_at_most_its_share(job_id, attempt):
    policy = Retry(initial=10 * SECOND, multiplier=1.0, maximum=HOUR, jitter=0.1)
    assert 9 * SECOND <= policy.delay(job_id=job_id, attempt=attempt) <= 11 * SECOND


@given(policies(), st.uuids(), st.integers(1, 100))
def test_same_job_and_attempt_always_wait_equally_long(policy, job_id, attempt):
    first = policy.delay(job_id=job_id, attempt=attempt)
    assert policy.delay(job_id=job_id, attempt=attempt) == first


def test_f161_jobs_that_failed_together_come_back_spread_out():
    policy = Retry(initial=MINUTE, jitter=0.5)
    waits = {policy.delay(job_id=uid(number), attempt=1) for number in range(50)}
    assert len(waits) > 40


def test_f161_jobs_that_wait_as_long_as_any_come_back_spread_out_as_well():
    policy = Retry(initial=MINUTE, maximum=11 * MINUTE, jitter=0.1)
    waits = {policy.delay(job_id=uid(number), attempt=20) for number in range(50)}
    assert len(waits) > 40
    assert 9 * MINUTE <= min(waits) < 9.2 * MINUTE
    assert 10.8 * MINUTE < max(waits) <= 11 * MINUTE


@given(policies())
def test_policy_survives_its_journey_through_a_lease_row(policy):
    text = policy.encode()
    assert (Retry.decode(text), len(text) <= 120) == (policy, True)


@pytest.mark.parametrize("text", ["", "1;2;3", "a;b;c;d;e", "0;1.0;1.0;1.0;0.0", "1;2;3;4;5;6"])
def test_text_that_is_no_policy_is_refused(text):
    with pytest.raises(ValueError, match=r"."):
        Retry.decode(text)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_attempts", 0),
        ("max_attempts", MOST_ATTEMPTS + 1),
        ("initial", -SECOND),
        ("multiplier", 0.5),
        ("multiplier", inf),
        ("maximum", SECOND),
        ("jitter", -0.1),
        ("jitter", 1.1),
    ],
)
def test_number_that_cannot_be_is_refused_by_name(name, value):
    with pytest.raises(ValueError, match=f"^{name}="):
        Retry(**{name: value})


@pytest.mark.parametrize("value", [True, 2.0, "3", None])
def test_attempts_that_are_no_whole_number_are_refused(value):
    with pytest.raises(TypeError, match=r"^max_attempts="):
        Retry(max_attempts=value)


def test_failed_attempt_is_tried_again_after_its_wait():
    policy = plain(max_attempts=3)
    assert [due_after(policy, job_id=JOB, attempt=n, now=T0) for n in (1, 2, 3, 4)] == [
        T0 + 10 * SECOND,
        T0 + 30 * SECOND,
        None,
        None,
    ]


def test_lost_attempt_is_tried_again_at_once_and_a_later_one_after_the_wait_before_it():
    policy = plain(max_attempts=4)
    assert [due_after_loss(policy, job_id=JOB, attempt=n, now=T0) for n in (1, 2, 3, 4, 5)] == [
        T0,
        T0 + 10 * SECOND,
        T0 + 30 * SECOND,
        None,
        None,
    ]


def test_lost_attempt_that_was_the_only_one_is_not_tried_again():
    assert due_after_loss(plain(max_attempts=1), job_id=JOB, attempt=1, now=T0) is None


@given(policies(), st.uuids(), st.integers(2, 100))
def test_later_loss_waits_as_long_as_the_failure_before_it(policy, job_id, attempt):
    assume(attempt < policy.max_attempts)
    failed = due_after(policy, job_id=job_id, attempt=attempt - 1, now=T0)
    assert due_after_loss(policy, job_id=job_id, attempt=attempt, now=T0) == failed


def test_table_prefers_the_policy_of_the_type():
    own, default = Retry(max_attempts=1), Retry(max_attempts=2)
    table = RetryTable(default=default, own={"shop.pack": own})
    assert (table.of("shop.pack"), table.of("shop.ship")) == (own, default)
