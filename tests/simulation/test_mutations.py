import pytest

from tests.simulation.atomic_mutations import ATOMIC
from tests.simulation.mutations import DRIVER, mutated
from tests.simulation.reaction_mutations import REACTIONS
from tests.simulation.scenarios import draw
from tests.simulation.store_mutations import STORE
from tests.simulation.world import run

#: Each bug has to show within so many seeds; most show in the first.
SEEDS = 200


@pytest.mark.parametrize(
    "mutation", [*DRIVER, *STORE, *REACTIONS, *ATOMIC], ids=lambda mutation: mutation.name
)
def test_mutation_is_caught(mutation, record_property):
    seeds = range(mutation.first, mutation.first + SEEDS)
    with mutated(mutation):
        report = next((one for seed in seeds if (one := run(draw(seed))).broke), None)
    assert report is not None, "no seed noticed"
    record_property("caught by", f"{report.broke}, seed {report.plan.seed}")


def test_mutations_are_gone_afterwards():
    with mutated(DRIVER[0]):
        assert run(draw(0)).broke
    assert not run(draw(0)).broke
