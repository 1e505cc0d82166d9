"""Limited work is found by its keys, however many limits there are and whatever was planned."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from django.db import connection

from backwave_django import models
from backwave_django.core.limits import Cap
from backwave_django.core.queues import NO_DEFAULTS, QueueDefaults
from backwave_django.store import PumpStore, default_store
from backwave_django.store.capping import _HELD_KEYS, _HELD_QUEUES, _KEYS, _QUEUES
from backwave_django.store.names import Statement
from tests.builders import ACTOR, T0, claim_request, new_job
from tests.store.test_plans import kept_plan, nodes, sqlite_steps

LIMITS = "backwave_limit"
MANY = 10_000


class Recorder:
    """Passes statements on to a store's executor, and keeps them."""

    def __init__(self, store: PumpStore) -> None:
        self._executor = store.executor
        self._fetch = store.executor.fetch
        self.kept: list[tuple[Statement, Any]] = []

    def __enter__(self) -> "Recorder":
        self._executor.fetch = self._record  # type: ignore[method-assign]  # it passes all on
        return self

    def __exit__(self, *_error: object) -> None:
        self._executor.fetch = self._fetch  # type: ignore[method-assign]  # as it was

    def _record(self, statement: Statement, parameters: Any) -> list[Any]:
        self.kept.append((statement, dict(parameters)))
        return self._fetch(statement, parameters)


class _Undone(Exception):
    """Raised to roll back what an EXPLAIN has carried out."""


def visited(store: PumpStore, statement: Statement, parameters: Any) -> int:
    """Return how many rows the statement reads when it is carried out once more."""
    explain = Statement("SELECT 1")
    explain.numbered = b"EXPLAIN (ANALYZE, FORMAT JSON) " + statement.numbered
    explain.names = statement.names
    plans: list[Any] = []
    with suppress(_Undone), store.executor.transaction():
        plans += store.executor.fetch(explain, parameters)
        raise _Undone
    return sum(_read(node) for node in nodes(plans[0][0][0]["Plan"]))


def _read(node: dict[str, Any]) -> int:
    if "Relation Name" not in node or "Scan" not in node["Node Type"]:
        return 0
    rows = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
    return int(rows * node["Actual Loops"])


def pages(store: PumpStore, statement: Statement, parameters: Any) -> int:
    """Return how many pages the statement looks at when it is carried out once more."""
    explain = Statement("SELECT 1")
    explain.numbered = b"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + statement.numbered
    explain.names = statement.names
    ((found,),) = store.executor.fetch(explain, parameters)
    plan = found[0]["Plan"]
    return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])


def declare(store: PumpStore, keys: Iterator[str]) -> None:
    store.declare_limits(dict.fromkeys(keys, Cap(2)))


@pytest.mark.vendor("postgresql")
@pytest.mark.parametrize("pattern", [False, True])
def test_ten_thousand_limited_keys_cost_the_claim_of_another_nothing(
    store: PumpStore,
    pattern: bool,  # noqa: FBT001 - parametrized
) -> None:
    if pattern:
        store.set_limit("own*", 1, actor=ACTOR, now=T0)
    reads = []
    for number, keys in ((1, range(10)), (2, range(10, MANY))):
        declare(store, (f"key-{key}" for key in keys))
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE backwave_limit")
        key = f"own-{number}"
        store.declare_limits({key: Cap(2)})
        default_store().enqueue([new_job(number, limit_key=key)])
        with Recorder(store) as recorder:
            answer = store.claim(claim_request(), now=T0)
        assert [job.job_id.int for job in answer.jobs] == [number]
        models.Lease.objects.all().delete()
        reads.append([visited(store, *each) for each in recorder.kept])
        models.Job.objects.all().delete()
    few, many = reads
    # The same statements, and the same rows in each.
    assert few == many
    assert max(many) < 10


@pytest.mark.vendor("postgresql")
def test_limits_are_read_by_keys_though_planned_over_empty_tables(store: PumpStore) -> None:
    store.set_queue_limit("default", 5, actor=ACTOR, now=T0)
    store.set_limit("a", 5, actor=ACTOR, now=T0)
    with connection.cursor() as cursor:
        models.Limit.objects.all().delete()
        cursor.execute("VACUUM ANALYZE backwave_limit, backwave_queue, backwave_lease")
    store.set_limit("a", 5, actor=ACTOR, now=T0)
    store.enqueue([new_job(1, limit_key="a")])
    assert len(store.claim(claim_request(), now=T0).jobs) == 1
    for statement in (_QUEUES, _HELD_QUEUES, _HELD_KEYS, _KEYS):
        scans = [node for node in kept_plan(store, statement) if "Relation Name" in node]
        bounded = [node for node in scans if "Index Cond" in node]
        # Patterns have an index of their own, which holds nothing else.
        rest = [node["Index Name"] for node in scans if "Index Cond" not in node]
        assert bounded
        assert set(rest) <= {"backwave_limit_pattern"}


@pytest.mark.vendor("sqlite")
@pytest.mark.parametrize("statement", [_QUEUES, _KEYS, _HELD_KEYS])
def test_sqlite_reads_limits_by_their_keys(store: PumpStore, statement: Statement) -> None:
    steps = sqlite_steps(store, statement)
    scans = [step for step in steps if step.startswith(("SCAN c", "SCAN q"))]
    assert [step for step in scans if "backwave_limit_pattern" not in step] == []


def test_claim_takes_the_same_number_of_statements_for_any_number_of_limited_keys(
    store: PumpStore,
) -> None:
    counts = []
    for number, keys in ((1, range(5)), (2, range(5, 500))):
        declare(store, (f"key-{key}" for key in keys))
        default_store().enqueue([new_job(number, limit_key="key-1")])
        with Recorder(store) as recorder:
            assert len(store.claim(claim_request(), now=T0).jobs) == 1
        counts.append(len(recorder.kept))
    assert counts[0] == counts[1]


def test_unlimited_work_asks_for_no_limits(store: PumpStore) -> None:
    store.set_limit("tenant:*", 1, actor=ACTOR, now=T0)
    # Queues whose defaults were taken away have a row, and nothing in it.
    for defaults in (QueueDefaults(Cap(1)), NO_DEFAULTS):
        served = dict.fromkeys(("default", "mail"), defaults)
        store.declare_queues({"bulk": QueueDefaults(Cap(1)), **served})
    default_store().enqueue([new_job(1), new_job(2, queue="mail")])
    with Recorder(store) as recorder:
        assert len(store.claim(claim_request("default", "mail"), now=T0).jobs) == 2
    asked = {statement for statement, _parameters in recorder.kept}
    assert asked.isdisjoint({_KEYS, _HELD_KEYS, _HELD_QUEUES})
    # With one writer there is one way to claim, which asks for pauses.
    assert (_QUEUES in asked) == (connection.vendor == "sqlite")


@pytest.mark.vendor("postgresql")
def test_the_backlog_of_one_key_is_stepped_over_in_one_step(store: PumpStore) -> None:
    store.declare_limits({"a-long-one": Cap(1)})
    backlog = [new_job(number, limit_key="a-long-one") for number in range(1, 20_001)]
    others = [new_job(20_000 + number, limit_key=f"key-{number:03}") for number in range(1, 101)]
    default_store().enqueue([*backlog, *others])
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE backwave_job")
    with Recorder(store) as recorder:
        store.claim(claim_request(), now=T0)
    looks = [each for each in recorder.kept if b"lane(limit_key, priority)" in each[0].numbered]
    assert looks
    # Three or four pages for each of a hundred keys; the backlog alone has more than a hundred.
    assert max(pages(store, *look) for look in looks) < 1_500
