"""What settles and cancels finds edges and jobs by their keys, however many there are."""

import pytest
from django.db import connection

from backwave_django.store import PumpStore
from backwave_django.store.applying_sqlite import _HELD
from backwave_django.store.names import Statement
from backwave_django.store.settling import (
    _APPEND,
    _CANCEL,
    _CHILDREN,
    _COUNT,
    _MARK,
    _QUEUE_OPEN,
    _RELEASE,
    _open,
)
from tests.builders import T0, uid
from tests.store.test_plans import kept_plan, sqlite_steps, unbounded

JOBS = [uid(1), uid(2)]
STATEMENTS: dict[str, tuple[Statement, dict[str, object]]] = {
    "edges": (_open("postgresql", 1_001), {"parents": JOBS}),
    "children": (_CHILDREN, {"children": JOBS}),
    "marks": (_MARK, {"edges": [1, 2]}),
    "counts": (_COUNT, {"jobs": JOBS, "settled": 1}),
    "releases": (_RELEASE, {"jobs": JOBS, "due": T0}),
    "queue": (_QUEUE_OPEN, {"parents": JOBS}),
    "cancels": (_CANCEL, {"jobs": JOBS, "cause": "operator", "now": T0}),
    "history": (_APPEND, {"jobs": JOBS, "cause": "operator", "now": T0}),
}


#: What the planner may find: tables that nobody has looked at, or that were looked at when empty,
#: at once or after rows came and went.
PASTS = {
    "unknown": (),
    "empty": ("VACUUM ANALYZE backwave_job, backwave_dependency, backwave_settlequeue",),
    "emptied": (
        """
        INSERT INTO backwave_dependency (parent_id, child_id, mode, settled)
        SELECT gen_random_uuid(), gen_random_uuid(), 'on_any', false FROM generate_series(1, 5000)
        """,
        "DELETE FROM backwave_dependency",
        "ANALYZE backwave_job, backwave_dependency, backwave_settlequeue",
    ),
}


@pytest.mark.vendor("postgresql")
@pytest.mark.parametrize("past", PASTS)
@pytest.mark.parametrize("name", STATEMENTS)
def test_settling_that_was_planned_over_empty_tables_reads_by_keys(
    store: PumpStore, name: str, past: str
) -> None:
    with connection.cursor() as cursor:
        for line in PASTS[past]:
            cursor.execute(line)
    statement, parameters = STATEMENTS[name]
    store.executor.execute(statement, parameters)
    found = kept_plan(store, statement)
    assert unbounded(found) == []
    entered = {node["Index Name"] for node in found if "Index Name" in node}
    assert (name in {"edges", "queue"}) == ("backwave_dependency_open" in entered)


@pytest.mark.vendor("sqlite")
@pytest.mark.parametrize(
    ("statement", "index"),
    [
        (_open("sqlite", 1_001), "backwave_dependency_open"),
        (_QUEUE_OPEN, "backwave_dependency_open"),
        (_HELD, "backwave_dependency_open"),
    ],
    ids=["edges", "queue", "report"],
)
def test_sqlite_enters_edges_by_their_parents(
    store: PumpStore, statement: Statement, index: str
) -> None:
    steps = sqlite_steps(store, statement)
    assert any(f"INDEX {index} (parent_id=?" in step for step in steps), steps
