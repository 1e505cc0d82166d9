"""A ground for each case, with nothing left of it afterwards."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from testproject.devpostgres import PrivatePostgres
from tests.field.closing import Bounds, assert_closed
from tests.field.ground import Ground
from tests.field.servers import TEMPLATE, OwnServer, clone, repointed
from tests.field.wires import Wire
from tests.fieldapp.ledger import VARIABLE, Ledger

SETTINGS = "tests.field.settings"


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger")


@pytest.fixture
def field(
    transactional_db: None, ledger: Ledger, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Ground]:
    if "own_server" in request.fixturenames:
        request.getfixturevalue("own_server")  # before anybody asks where the database is
    environ = {
        **request.getfixturevalue("child_environ"),
        "DJANGO_SETTINGS_MODULE": SETTINGS,
        VARIABLE: str(ledger.path),
    }
    ground = Ground(environ=environ, directory=tmp_path)
    yield ground
    ground.close()
    # Shown with a test that failed, and swallowed otherwise.
    print(ground.logs())  # noqa: T201


@pytest.fixture
def closed(field: Ground, ledger: Ledger) -> Callable[[], None]:
    """Check the closing conditions: the last thing that a case does before it stops its pumps."""

    def check(bounds: Bounds | None = None) -> None:
        assert_closed(field, ledger, bounds)

    return check


@pytest.fixture(scope="session")
def _template(_postgres_server: PrivatePostgres) -> str:
    url = _postgres_server.create_database(TEMPLATE)
    environ = {**os.environ, "DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": SETTINGS}
    subprocess.run(
        [sys.executable, "-m", "django", "migrate", "-v0"], env=environ, check=True, timeout=120
    )
    return TEMPLATE


@pytest.fixture
def own_server(
    transactional_db: None, postgres_server: PrivatePostgres, _template: str
) -> Iterator[OwnServer]:
    """A server that the case may do anything to; everybody works on a fresh database there."""
    name = clone(postgres_server)
    with repointed(postgres_server, name):
        yield OwnServer(postgres_server, name)


@pytest.fixture
def wire(database_url: str) -> Iterator[Wire]:
    """A wire to the test's database."""
    with Wire(database_url) as wire:
        yield wire
