import pytest

from tests.pumps.marks import BEGUN, GO, SEEN


@pytest.fixture(autouse=True)
def _fresh_marks():
    SEEN.clear()
    BEGUN.clear()
    GO.clear()
    yield
    GO.set()
