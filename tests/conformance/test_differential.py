"""The database's store against the reference, under any sequence of operations.

``BACKWAVE_DIFFERENTIAL_EXAMPLES`` (25 for each connection and machine) says how many sequences
are tried, ``BACKWAVE_DIFFERENTIAL_STEPS`` (30) how long each may be. A failing sequence is
printed as a program. It is kept under ``.hypothesis``: another run with
``BACKWAVE_DIFFERENTIAL_SHRINK=1`` makes it as short as it can be, which takes minutes.
"""

import os
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from backwave_django.core.contract import StoreSettings
from backwave_django.store.executor import Executor
from backwave_django.store.executors import DjangoExecutor, open_pump_store
from tests.builders import MINUTE
from tests.conformance.clockwork import Clockwork
from tests.conformance.flows import Flows
from tests.conformance.machine import Differential, RivalMachine

EXAMPLES = int(os.environ.get("BACKWAVE_DIFFERENTIAL_EXAMPLES", "15"))
STEPS = int(os.environ.get("BACKWAVE_DIFFERENTIAL_STEPS", "30"))
SHRINK = (Phase.shrink,) if os.environ.get("BACKWAVE_DIFFERENTIAL_SHRINK") else ()


def own_connection() -> Executor:
    """The executor of a pump."""
    return open_pump_store(
        "default", StoreSettings(), application_name="differential", lease_duration=MINUTE
    ).executor


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "make_executor", [lambda: DjangoExecutor("default"), own_connection], ids=["django", "pump"]
)
@pytest.mark.parametrize("machine", [Differential, Clockwork, Flows])
def test_store_cannot_be_told_from_the_reference(
    machine: type[RivalMachine], make_executor: Callable[[], Executor]
) -> None:
    run_state_machine_as_test(
        type(machine.__name__, (machine,), {"make_executor": staticmethod(make_executor)}),
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            phases=(Phase.reuse, Phase.generate, *SHRINK),
            deadline=None,
            suppress_health_check=list(HealthCheck),
            print_blob=True,
        ),
    )
