"""Each bug made on purpose is noticed, and none is while there is none."""

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest
from django.db import connection

from backwave_django.store.names import Statement
from tests.torture import checks, telling
from tests.torture.mutations import (
    BOTH,
    MUTATIONS,
    POSTGRESQL,
    Mutation,
    Swap,
    floors_trusted_for_ever,
    limits_counted_where_they_are_locked,
    mutated,
    observers_told_after_the_commit,
    observers_told_twice,
)

pytestmark = pytest.mark.django_db(transaction=True)

#: Bugs that are more than other words.
CHANGED_CODE = (
    (
        limits_counted_where_they_are_locked,
        checks.limit_holds_for_one_who_waited_for_another,
        POSTGRESQL,
    ),
    (floors_trusted_for_ever, checks.floor_is_forgotten_after_a_while, POSTGRESQL),
    (observers_told_twice, telling.dead_letter_is_told_once, BOTH),
    (observers_told_after_the_commit, telling.dead_letter_is_told_once, BOTH),
)


def _on(vendors: tuple[str, ...]) -> list[pytest.MarkDecorator]:
    return [] if vendors == BOTH else [pytest.mark.vendor(vendor) for vendor in vendors]


WORDS = [
    pytest.param(mutation, id=mutation.name, marks=_on(mutation.vendors)) for mutation in MUTATIONS
]
CODE = [
    pytest.param(bug, check, id=bug.__name__.replace("_", " "), marks=_on(vendors))
    for bug, check, vendors in CHANGED_CODE
]


@pytest.mark.parametrize("mutation", WORDS)
def test_mutation_of_words_is_caught(mutation: Mutation) -> None:
    mutation.check()
    _clear()
    with mutated(mutation.swaps) as mutant:
        with pytest.raises(AssertionError):
            mutation.check()
        assert mutant.has_spread, "the store's words have changed"


@pytest.mark.parametrize(("bug", "check"), CODE)
def test_mutation_of_code_is_caught(
    bug: Callable[[], AbstractContextManager[None]], check: checks.Check
) -> None:
    check()
    _clear()
    with bug(), pytest.raises(AssertionError):
        check()


def _clear() -> None:
    with connection.cursor() as cursor:
        for table in reversed(connection.introspection.table_names(cursor)):
            if table.startswith("backwave_"):
                cursor.execute(f"DELETE FROM {table}")  # noqa: S608 - a name of ours


def test_mutations_are_gone_afterwards() -> None:
    before = Statement("SELECT 1 FROM {job} WHERE 1 = %(one)s")
    texts = dict(before._texts), before.numbered, before.names
    with mutated((Swap(r"1 = %\(one\)s", "2 = %(two)s"),)):
        assert before.names == ("two",)
        assert Statement("SELECT 1 = %(one)s").names == ("two",)
    assert (before._texts, before.numbered, before.names) == texts
    assert Statement("SELECT 1 = %(one)s").names == ("one",)
