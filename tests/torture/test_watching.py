"""The watcher finds what it is there to find: in one look at leases that was made by hand."""

import pytest

from tests.torture.jobs import CAPPED_LIMIT, GATEWAY, GATEWAY_LIMIT
from tests.torture.watching import problems


def lease(number, *, queue="plain", key=None, run=1):
    return (number, f"job-{number}", run, queue, key, 0.0, f"job-{number}", 1, queue)


def test_watcher_sees_nothing_wrong_with_leases_within_their_limits():
    rows = [lease(number, queue="capped") for number in range(CAPPED_LIMIT)]
    rows += [lease(10 + number, key=GATEWAY) for number in range(GATEWAY_LIMIT)]
    assert problems([*rows, lease(99)]) == []


@pytest.mark.parametrize(
    ("rows", "invariant"),
    [
        ([(None, None, None, None, None, None, "job", 1, "plain")], "lease-iff-leased"),
        ([(1, "job", 1, "plain", None, 0.0, None, None, None)], "lease-iff-leased"),
        ([lease(1, run=2)], "lease-iff-leased"),
        ([lease(1), (2, *lease(1)[1:])], "no-double-lease"),
        ([lease(n, queue="capped") for n in range(CAPPED_LIMIT + 1)], "limit-never-exceeded"),
        ([lease(n, key=GATEWAY) for n in range(GATEWAY_LIMIT + 1)], "key-limit-never-exceeded"),
    ],
)
def test_watcher_sees_what_must_never_be(rows, invariant):
    assert [found for found, _ in problems(rows)] == [invariant]
