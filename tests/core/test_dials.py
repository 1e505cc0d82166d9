from datetime import timedelta

import pytest

from backwave_django.core.dials import StopRule
from tests.core.drivers import SECOND, config


def test_the_defaults_are_those_of_the_settings():
    dials = config()
    assert (dials.pool_size, dials.max_claim_batch, dials.poll_interval) == (20, 32, SECOND)
    assert dials.stop == StopRule()


@pytest.mark.parametrize(
    "dials",
    [
        {"queues": ()},
        {"pool_size": 0},
        {"max_claim_batch": 0},
        {"max_claim_batch": 501},
        {"max_outcome_batch": 0},
        {"max_outcome_batch": 501},
        {"heartbeat_interval": timedelta(0)},
        {"heartbeat_interval": 60 * SECOND},
        {"poll_interval": timedelta(0)},
        {"weights": {"mail": 1}},
    ],
)
def test_dials_that_cannot_be_are_a_bug(dials):
    with pytest.raises(AssertionError):
        config(**dials)
