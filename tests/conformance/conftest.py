"""Which stores the clauses are checked against."""

from collections.abc import Callable, Iterator

import pytest
from django.db import connection

from backwave_django.core.contract import Store, StoreSettings
from backwave_django.core.memory import Snapshot
from backwave_django.store.adapter import DatabaseStore
from tests.conformance.subjects import Subject, django_subject, memory_subject, pump_subject

# The comparison of rivals should say what differs, not only that something does.
pytest.register_assert_rewrite("tests.conformance.rivals")

MakeSubject = Callable[[StoreSettings], Subject]

ON_A_DATABASE = pytest.mark.django_db(transaction=True)
SUBJECTS = {"memory": memory_subject, "django": django_subject, "pump": pump_subject}


def pytest_configure(config: pytest.Config) -> None:
    """Declare the markers of this suite."""
    config.addinivalue_line(
        "markers", "row_locks: the clause is about rows that another transaction holds"
    )
    config.addinivalue_line("markers", "on_databases: the clause is about databases only")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a clause against every store; SQLite has no row locks for it to be about."""
    if "make_subject" not in metafunc.fixturenames:
        return
    about_locks = metafunc.definition.get_closest_marker("row_locks") is not None
    about_databases = metafunc.definition.get_closest_marker("on_databases") is not None
    names = [] if about_databases else ["memory"]
    if not (about_locks and connection.vendor == "sqlite"):
        names += ["django", "pump"]
    kinds = [
        pytest.param(name, marks=[] if name == "memory" else [ON_A_DATABASE]) for name in names
    ]
    metafunc.parametrize("make_subject", kinds, indirect=True)


@pytest.fixture
def make_subject(request: pytest.FixtureRequest) -> Iterator[MakeSubject]:
    """Build a store of one kind with settings of the test's own."""
    made: list[Subject] = []

    def make(settings: StoreSettings) -> Subject:
        made.append(SUBJECTS[request.param](settings))
        return made[-1]

    yield make
    for subject in made:
        if isinstance(subject.store, DatabaseStore):
            subject.store.close()


@pytest.fixture
def subject(make_subject: MakeSubject) -> Subject:
    """An empty store with default settings."""
    return make_subject(StoreSettings())


@pytest.fixture
def store(subject: Subject) -> Store:
    """The store itself."""
    return subject.store


@pytest.fixture
def observe(subject: Subject) -> Callable[[], Snapshot]:
    """Read the whole visible state."""
    return subject.observe
