"""One run of the tests is a run on one database: the one that ``DATABASE_URL`` names.

Without it that is SQLite, in a fresh file. ``python -m tests`` makes a run on each database.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from django.conf import settings
from django.db import connection
from django.test import TransactionTestCase
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings

from testproject.devpostgres import PrivatePostgres
from tests.flushing import empty_databases

POSTGRES_ONLY_FIXTURES = {"postgres_server"}

# How long an example takes says something about the machine, not about what is tested.
hypothesis_settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
hypothesis_settings.load_profile("any machine")


def pytest_configure(config: pytest.Config) -> None:
    """Declare the markers of this suite."""
    config.addinivalue_line(
        "markers", "vendor(name): the test is about this database; runs on others leave it out"
    )
    config.addinivalue_line("markers", "slow: takes long; runs with `-m slow` only")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what belongs to another database's run."""
    left_out = [item for item in items if not _belongs_here(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def _belongs_here(item: pytest.Item) -> bool:
    vendors = {mark.args[0] for mark in item.iter_markers("vendor")}
    if POSTGRES_ONLY_FIXTURES & set(getattr(item, "fixturenames", ())):
        vendors.add("postgresql")
    return not vendors or connection.vendor in vendors


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    django_db_modify_db_settings: None, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Put a SQLite test database into a directory of its own.

    A file, because threads and child processes share it; a fresh one, because SQLite would
    replay the write-ahead log that a killed run left next to it.
    """
    if connection.vendor == "sqlite":
        fresh = tmp_path_factory.mktemp("database") / "test.sqlite3"
        settings.DATABASES["default"]["TEST"]["NAME"] = str(fresh)


@pytest.fixture(scope="session", autouse=True)
def _flushed_quickly() -> Iterator[None]:
    """Empty the database after each test that commits, in a tenth of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", empty_databases)
        yield


@pytest.fixture(scope="session")
def database_vendor() -> str:
    """``sqlite`` or ``postgresql``: the database of this run."""
    return connection.vendor


@pytest.fixture
def database_url(transactional_db: None) -> str:
    """The ``DATABASE_URL`` of the test database, for child processes."""
    values = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{values['NAME']}"
    user, password = quote(values["USER"], safe=""), quote(values["PASSWORD"], safe="")
    return f"postgres://{user}:{password}@{values['HOST']}:{values['PORT']}/{values['NAME']}"


@pytest.fixture
def child_environ(database_url: str, tmp_path: Path) -> dict[str, str]:
    """The environment of a child process that works on this test's database."""
    return {
        **os.environ,
        "DATABASE_URL": database_url,
        "DEBUG": "0",
        "DJANGO_SETTINGS_MODULE": "testproject.settings",
        "PYTHONPATH": str(Path(__file__).resolve().parent.parent),
        "PYTHONUNBUFFERED": "1",
        "SHOP_VAR_DIR": str(tmp_path / "var"),
    }


@pytest.fixture(scope="session")
def _postgres_server() -> Iterator[PrivatePostgres]:
    with PrivatePostgres(settings={"fsync": "off"}) as server:
        yield server


@pytest.fixture
def postgres_server(_postgres_server: PrivatePostgres) -> Iterator[PrivatePostgres]:
    """A server that is not the run's: a test may stop, suspend or crash it.

    It is up when a test begins, whatever the test before did. Such tests are left out of
    SQLite's run.
    """
    yield _postgres_server
    _postgres_server.revive()


@pytest.fixture(scope="session")
def need_program() -> Callable[[str], str]:
    """Return the path of an optional program, or skip the test by the program's name."""

    def find(name: str) -> str:
        path = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
        if path is None:
            pytest.skip(f"needs the program {name}, which is not installed")
        return path

    return find
