"""Statements are written once, with the names that the models give."""

import pytest
from django.apps import apps
from django.db.models import Model

from backwave_django.models import Job
from backwave_django.store.names import Statement, columns, table


def test_tables_are_named_by_their_models() -> None:
    statement = Statement("SELECT 1 FROM {job}")
    assert statement.on("postgresql") == 'SELECT 1 FROM "backwave_job"'
    assert table("job") == f'"{Job._meta.db_table}"'


def test_each_driver_reads_its_own_placeholders() -> None:
    statement = Statement("SELECT %(b)s, %(a)s, %(b)s, id {any:ids}")
    assert statement.on("postgresql") == "SELECT %(b)s, %(a)s, %(b)s, id = ANY(%(ids)s)"
    assert statement.numbered == b"SELECT $1, $2, $1, id = ANY($3)"
    assert statement.names == ("b", "a", "ids")
    in_ids = "id IN (SELECT value FROM json_each(%s))"
    assert statement.on("sqlite") == f"SELECT %(b)s, %(a)s, %(b)s, {in_ids % '%(ids)s'}"
    assert statement.on("sqlite3") == f"SELECT :b, :a, :b, {in_ids % ':ids'}"


@pytest.mark.parametrize("model", list(apps.get_app_config("backwave").get_models()))
def test_columns_are_called_as_their_fields(model: type[Model]) -> None:
    # The statements write columns by these names.
    assert [field.column for field in model._meta.concrete_fields] == [
        field.attname for field in model._meta.concrete_fields
    ]


def test_columns_come_in_the_order_of_the_fields() -> None:
    assert columns("settle") == ("id", "parent_id")
