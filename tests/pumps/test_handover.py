"""Work goes from one thread to many, and events come back: nothing is lost, nobody sleeps on."""

import threading
from collections import Counter
from collections.abc import Callable
from functools import partial

from backwave_django.core import events as e
from backwave_django.pumps.handover import Handover
from backwave_django.pumps.inbox import Inbox
from tests.pumps.waiting import until

LONG = 20.0
Work = Callable[[], object]


def nothing() -> None:
    """What threads do that rest."""


class Crew:
    """Threads that run what they are given, until they are given nothing."""

    def __init__(self, size: int, *, rest_seconds: float = LONG, rested: Work = nothing) -> None:
        self.handover: Handover[Work | None] = Handover()
        self.ran: Counter[str] = Counter()
        self._rest = rest_seconds
        self._rested = rested
        self._threads = [threading.Thread(target=self._run, daemon=True) for _ in range(size)]
        for thread in self._threads:
            thread.start()

    def _run(self) -> None:
        take = self.handover.taker(rest_seconds=self._rest, rested=self._rested)
        while (work := take()) is not None:
            work()
            self.ran[threading.current_thread().name] += 1

    def end(self) -> None:
        self.handover.give([None] * len(self._threads))
        for thread in self._threads:
            thread.join(LONG)
        assert not any(thread.is_alive() for thread in self._threads)


def test_items_are_taken_once_each_however_they_come() -> None:
    crew = Crew(8)
    taken: list[int] = []
    numbers = iter(range(3_000))
    for size in (1, 2, 7, 20) * 100:
        crew.handover.give([partial(taken.append, next(numbers)) for _ in range(size)])
    crew.end()
    assert sorted(taken) == list(range(3_000))


def test_items_that_wait_for_each_other_all_begin() -> None:
    crew = Crew(20)
    for _ in range(20):
        together = threading.Barrier(21, timeout=LONG)
        crew.handover.give([together.wait] * 20)
        together.wait()
    crew.end()
    assert crew.ran.total() == 400


def test_item_is_taken_while_all_but_one_are_at_work() -> None:
    crew = Crew(3)
    release, ran = threading.Event(), threading.Event()
    crew.handover.give([release.wait, release.wait])
    crew.handover.give([ran.set])
    assert ran.wait(LONG)
    release.set()
    crew.end()


def resting(crew: Crew, size: int) -> None:
    """Wait until as many threads wait for work."""
    until(lambda: len(crew.handover._idle) == size)


def test_items_in_a_row_are_taken_by_one_thread() -> None:
    crew = Crew(4)
    resting(crew, 4)
    done = threading.Event()
    crew.handover.give([*[nothing] * 500, done.set], in_a_row=True)
    assert done.wait(LONG)
    resting(crew, 4)
    assert list(crew.ran.values()) == [501]
    crew.end()


def test_the_rest_of_a_row_is_spread_over_all_threads() -> None:
    crew = Crew(4)
    for _ in range(50):
        resting(crew, 4)
        together = threading.Barrier(5, timeout=LONG)
        crew.handover.give([together.wait] * 4, in_a_row=True)
        crew.handover.spread()
        together.wait()
    crew.end()
    assert crew.ran.total() == 200


def test_resting_threads_are_told_once_and_work_again() -> None:
    rests = threading.Semaphore(0)
    crew = Crew(2, rest_seconds=0.01, rested=rests.release)
    assert [rests.acquire(timeout=LONG) for _ in range(2)] == [True, True]
    together = threading.Barrier(3, timeout=LONG)
    crew.handover.give([together.wait] * 2)
    together.wait()
    crew.end()


def test_event_that_is_put_ends_a_wait_for_many() -> None:
    inbox = Inbox()
    threading.Timer(0.01, lambda: inbox.put(e.DrainRequested())).start()
    assert inbox.wait(seconds=LONG, at_least=20) == [e.DrainRequested()]


def test_events_that_are_slipped_in_end_a_wait_once_there_are_enough() -> None:
    inbox = Inbox()

    def slip() -> None:
        for _ in range(500):
            inbox.slip(e.Ticked())

    for _ in range(20):
        threads = [threading.Thread(target=slip) for _ in range(4)]
        for thread in threads:
            thread.start()
        found = 0
        while found < 2_000:
            events = inbox.wait(seconds=LONG, at_least=min(20, 2_000 - found))
            assert events
            found += len(events)
        for thread in threads:
            thread.join()


def test_wait_brings_what_is_there_when_its_time_is_over() -> None:
    inbox = Inbox()
    assert inbox.wait(seconds=0.001) == []
    inbox.slip(e.Ticked())
    assert inbox.wait(seconds=0.001, at_least=2) == [e.Ticked()]
