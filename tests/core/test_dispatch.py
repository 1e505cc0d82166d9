from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from backwave_django.core.dispatch import Dispatcher, Share

WEIGHTS = st.dictionaries(
    st.sampled_from("abcde"), st.integers(min_value=1, max_value=9), min_size=2
)


def test_f163_strict_order_offers_everything_to_the_list_as_it_is():
    assert Dispatcher(queues=("a", "b"), weights=None).shares(5) == (Share(("a", "b"), 5),)


def test_one_weighted_queue_is_a_list_of_one():
    assert Dispatcher(queues=("a",), weights={"a": 3}).shares(5) == (Share(("a",), 5),)


def test_a_round_follows_the_weights():
    dispatcher = Dispatcher(queues=("a", "b", "c"), weights={"a": 5, "b": 2, "c": 1})
    assert dispatcher.shares(8) == (
        Share(("a", "b", "c"), 5),
        Share(("b", "a", "c"), 2),
        Share(("c", "a", "b"), 1),
    )


def test_single_slots_are_spread_smoothly():
    dispatcher = Dispatcher(queues=("a", "b"), weights={"a": 3, "b": 1})
    given_to = [dispatcher.shares(1)[0].queues[0] for _ in range(8)]
    assert "".join(given_to) == "aabaaaba"


def test_queues_of_equal_weight_take_turns_in_their_order():
    dispatcher = Dispatcher(queues=("b", "a"), weights={"a": 1, "b": 1})
    assert [dispatcher.shares(1)[0].queues[0] for _ in range(4)] == ["b", "a", "b", "a"]


@given(weights=WEIGHTS, sizes=st.lists(st.integers(min_value=1, max_value=20), max_size=40))
def test_every_slot_is_offered_to_every_queue(weights, sizes):
    dispatcher = Dispatcher(queues=tuple(weights), weights=weights)
    for size in sizes:
        shares = dispatcher.shares(size)
        assert sum(share.limit for share in shares) == size
        assert all(set(share.queues) == set(weights) for share in shares)


@given(weights=WEIGHTS, sizes=st.lists(st.integers(min_value=1, max_value=20), max_size=40))
def test_shares_never_stray_from_the_weights_by_a_whole_round(weights, sizes):
    dispatcher = Dispatcher(queues=tuple(weights), weights=weights)
    slots: Counter[str] = Counter()
    for size in sizes:
        for share in dispatcher.shares(size):
            slots[share.queues[0]] += share.limit
        for name, weight in weights.items():
            fair = slots.total() * weight / sum(weights.values())
            assert abs(slots[name] - fair) < len(weights)
