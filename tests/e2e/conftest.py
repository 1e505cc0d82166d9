"""A field for each case, with nothing left of it afterwards."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.processes import Field
from tests.fieldapp.ledger import VARIABLE, Ledger


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger")


@pytest.fixture
def field(
    child_environ: dict[str, str], ledger: Ledger, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Field]:
    field = Field(
        environ={
            **child_environ,
            "DJANGO_SETTINGS_MODULE": "tests.fieldapp.settings",
            VARIABLE: str(ledger.path),
        },
        directory=tmp_path,
    )
    yield field
    field.close()
    # Shown with a test that failed, and swallowed otherwise.
    print(field.logs())  # noqa: T201


@pytest.fixture(scope="session")
def number_of_jobs() -> int:
    """How many jobs the race for them has: 4,000, or what ``FIELD_JOBS`` says (20,000 is F020)."""
    return int(os.environ.get("FIELD_JOBS", "4000"))
