import os
import threading
from datetime import UTC, datetime
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backwave_django.jobs.ids import IdSource, instant_of, new_id

MS = 1_000_000


class Entropy:
    """Bytes that a test chooses: all zero, or all ones."""

    def __init__(self, byte: int) -> None:
        self.byte = byte

    def __call__(self, size: int) -> bytes:
        return bytes([self.byte]) * size


def source(instants, *, byte=0):
    given_instants = iter(instants)
    return IdSource(clock_ns=lambda: next(given_instants), entropy=Entropy(byte))


def test_an_id_is_a_uuid_of_version_7():
    made = new_id()
    assert (made.version, made.variant) == (7, "specified in RFC 4122")


def test_an_id_tells_when_it_was_made():
    at = datetime(2040, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)
    made = source([int(at.timestamp() * 1000) * MS]).new()
    assert instant_of(made) == at


@given(
    st.lists(st.integers(min_value=0, max_value=2**47 * MS), min_size=2, max_size=50),
    st.sampled_from([0, 255]),
)
def test_ids_grow_whatever_the_clock_does(instants, byte):
    ids = source(instants, byte=byte)
    made = [ids.new() for _ in instants]
    assert made == sorted(set(made))
    assert {(each.version, each.variant) for each in made} == {(7, "specified in RFC 4122")}


def test_ids_of_one_millisecond_grow():
    ids = source([5 * MS] * 10_000, byte=255)
    made = [ids.new() for _ in range(10_000)]
    assert made == sorted(set(made))
    assert {each.int >> 80 for each in made} == {5}


def test_reseeding_never_repeats_nor_goes_back():
    ids = source([5 * MS] * 4)
    before = [ids.new(), ids.new()]
    ids.reseed()
    after = [ids.new(), ids.new()]
    assert [*before, *after] == sorted({*before, *after})


def test_threads_get_different_ids():
    made: list[list[UUID]] = [[] for _ in range(4)]

    def work(mine):
        mine.extend(new_id() for _ in range(5_000))

    threads = [threading.Thread(target=work, args=(mine,), daemon=True) for mine in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len({each for mine in made for each in mine}) == 20_000
    assert all(mine == sorted(mine) for mine in made)


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_makes_ids_of_its_own():
    reader, writer = os.pipe()
    new_id()
    child = os.fork()
    if child == 0:
        os.write(writer, b"".join(new_id().bytes for _ in range(100)))
        os._exit(0)
    mine = {new_id().bytes for _ in range(100)}
    os.waitpid(child, 0)
    theirs = os.read(reader, 1600)
    os.close(reader)
    os.close(writer)
    assert len(theirs) == 1600
    assert not mine & {theirs[at : at + 16] for at in range(0, 1600, 16)}
