from backwave_django.core.claiming import MAX_HINTED_LANES, Claiming
from backwave_django.core.contract import ClaimAnswer
from backwave_django.core.dials import StopRule
from tests.core.drivers import T0, at, claim, config, jobs


def answer(*found, short=True, next_due=None):
    return ClaimAnswer(jobs=found, short=short, next_due=next_due, clock=T0)


def test_the_size_is_what_is_free():
    assert Claiming(config(max_claim_batch=8)).size(5) == 5


def test_the_size_is_at_most_the_batch():
    assert Claiming(config(max_claim_batch=8)).size(9) == 8


def test_nothing_is_claimed_once_closed():
    claiming = Claiming(config())
    claiming.open = False
    assert claiming.size(9) == 0


def test_the_size_is_at_most_what_the_stop_rule_leaves():
    claiming = Claiming(config(stop=StopRule(max_jobs=5)))
    claiming.answered(answer(*jobs(1, 2, 3)), idle=False, now=T0)
    assert claiming.size(9) == 2


def test_an_overshot_stop_rule_claims_nothing():
    claiming = Claiming(config(stop=StopRule(max_jobs=2)))
    claiming.answered(answer(*jobs(1, 2, 3)), idle=False, now=T0)
    assert claiming.size(9) == 0


def test_hinted_lanes_go_into_the_next_claims_only():
    claiming = Claiming(config())
    assert claiming.hinted(queue="default", priority=3)
    assert claiming.hinted(queue="default", priority=3)
    assert claiming.claims(4) == (claim(4, hinted=(("default", 3),)),)
    assert claiming.claims(4) == (claim(4),)


def test_hinted_lanes_are_bounded():
    claiming = Claiming(config())
    for priority in range(MAX_HINTED_LANES + 5):
        assert claiming.hinted(queue="default", priority=priority)
    (only,) = claiming.claims(1)
    assert len(only.request.hinted) == MAX_HINTED_LANES


def test_lanes_of_other_queues_are_not_noted():
    assert not Claiming(config()).hinted(queue="mail", priority=0)


def test_idle_means_a_short_empty_answer_with_nothing_due():
    rule = {"stop": StopRule(when_idle=True)}
    for found, short, next_due, idle, still_open in (
        ((), True, None, True, False),
        ((), True, at(1), True, False),
        ((), True, T0, True, True),
        ((), False, None, True, True),
        ((), True, None, False, True),
        (jobs(1), True, None, True, True),
    ):
        claiming = Claiming(config(**rule))
        claiming.answered(answer(*found, short=short, next_due=next_due), idle=idle, now=T0)
        assert claiming.open is still_open
