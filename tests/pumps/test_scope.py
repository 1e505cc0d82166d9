import contextvars
import json
import threading

import pytest
import svcs
from django.contrib.auth.models import Group
from django.core.cache import caches
from django.db import IntegrityError, connection, transaction
from django.utils import timezone, translation

import backwave_django as backwave
from backwave_django.core import events as e
from tests.pumps.attempting import Bench, on_a_thread

RID: contextvars.ContextVar[int] = contextvars.ContextVar("rid", default=0)
SHARED: contextvars.ContextVar[dict[str, int] | None] = contextvars.ContextVar(
    "shared", default=None
)


@backwave.job("scope.leave_language")
def leave_language(how: str) -> None:
    if how == "off":
        translation.deactivate_all()
    else:
        translation.activate("de")
        timezone.activate("Asia/Kathmandu")
    if how == "exit":
        raise SystemExit
    if how == "raise":
        raise ValueError


@backwave.job("scope.tell_language")
def tell_language() -> list[str]:
    return [
        translation.get_language(),
        translation.gettext("Yes"),
        timezone.get_current_timezone_name(),
    ]


@backwave.job("scope.set_variable")
def set_variable() -> None:
    RID.set(1)
    shared = SHARED.get()
    if shared is not None:
        shared["leaked"] = 1


@backwave.job("scope.tell_variable")
def tell_variable() -> list[object]:
    return [RID.get(), SHARED.get()]


@backwave.job("scope.aset_variable")
async def aset_variable() -> None:
    RID.set(1)


@backwave.job("scope.atell_variable")
async def atell_variable() -> int:
    return RID.get()


@backwave.job("scope.parallel")
def parallel(number: int) -> bool:
    for _ in range(1_000):
        RID.set(number)
        if RID.get() != number:
            return False
    return True


@backwave.job("scope.swallow")
def swallow_integrity_error() -> str:
    with transaction.atomic():
        Group.objects.create(name="twice")
        try:
            Group.objects.create(name="twice")
        except IntegrityError:
            return "ok"
    return "never"


@backwave.job("scope.no_commit")
def no_commit() -> str:
    transaction.set_autocommit(False)
    Group.objects.create(name="uncommitted")
    return "ok"


@backwave.job("scope.open_atomic")
def open_atomic() -> str:
    transaction.atomic().__enter__()
    Group.objects.create(name="uncommitted")
    return "ok"


@backwave.job("scope.query")
def query() -> int:
    return Group.objects.count()


@backwave.job("scope.connection")
def tell_connection() -> int:
    connection.ensure_connection()
    return id(connection.connection)


@backwave.job("scope.aquery")
async def aquery() -> int:
    return await Group.objects.acount()


@backwave.job("scope.cache")
def tell_cache() -> int:
    return id(caches["default"])


def output(ended: e.AttemptEnded) -> object:
    assert isinstance(ended, e.AttemptSucceeded), ended
    return None if ended.output is None else json.loads(ended.output)


@pytest.mark.parametrize("how", ["return", "raise", "exit", "off"])
def test_f104_language_and_time_zone_do_not_leak(how):
    def attempts():
        bench = Bench()
        bench.run(leave_language, how)
        return output(bench.run(tell_language))

    assert on_a_thread(attempts) == ["en", "Yes", "UTC"]


def test_f106_context_variables_do_not_leak():
    SHARED.set({})

    def attempts():
        bench = Bench()
        bench.run(set_variable)
        bench.run(aset_variable)
        return output(bench.run(tell_variable)), output(bench.run(atell_variable))

    assert on_a_thread(attempts) == ([0, None], 0)
    assert SHARED.get() == {}


def test_f106_parallel_attempts_do_not_see_each_other():
    bench = Bench()
    answers: list[object] = []
    threads = [
        threading.Thread(target=lambda n=n: answers.append(output(bench.run(parallel, n))))
        for n in range(1, 5)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert answers == [True] * 4


@pytest.mark.parametrize("reuse", [False, True], ids=["fresh", "reuse"])
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("body", [swallow_integrity_error, no_commit, open_atomic])
def test_f029_a_broken_or_open_transaction_ends_with_its_attempt(body, reuse):
    def attempts():
        bench = Bench(reuse_connections=reuse)
        first = bench.run(body)
        count, acount = output(bench.run(query)), output(bench.run(aquery))
        bench.attempts._scopes._give_back()
        connection.close()
        return isinstance(first, e.AttemptSucceeded | e.AttemptFailed), count, acount

    assert on_a_thread(attempts) == (True, 0, 0)


@pytest.mark.django_db(transaction=True)
def test_a_fresh_connection_is_closed_after_each_attempt():
    def attempts():
        bench = Bench()
        bench.run(tell_connection)
        return connection.connection is None

    assert on_a_thread(attempts)


def kept_between_attempts() -> tuple[bool, bool]:
    bench = Bench(reuse_connections=True)
    first, second = output(bench.run(tell_connection)), output(bench.run(tell_connection))
    open_still = connection.connection is not None
    connection.close()
    return first == second, open_still


@pytest.mark.django_db(transaction=True)
def test_a_healthy_connection_is_kept_on_demand():
    assert on_a_thread(kept_between_attempts) == (True, True)


@pytest.mark.vendor("postgresql")
@pytest.mark.django_db(transaction=True)
def test_a_connection_that_prepares_its_statements_is_kept_as_well(monkeypatch):
    prepares = {"server_side_binding": True, "prepare_threshold": 0}
    monkeypatch.setitem(connection.settings_dict, "OPTIONS", prepares)
    assert on_a_thread(kept_between_attempts) == (True, True)


@pytest.mark.django_db(transaction=True)
def test_f101_the_query_log_does_not_grow(settings):
    settings.DEBUG = True

    def attempts():
        bench = Bench(reuse_connections=True)
        for _ in range(20):
            bench.run(query)
        length = len(connection.queries_log)
        connection.close()
        return length

    assert on_a_thread(attempts) == 0


def test_cache_clients_are_shared_by_the_attempts_of_a_thread():
    def attempts():
        bench = Bench()
        return output(bench.run(tell_cache)), output(bench.run(tell_cache))

    first, second = on_a_thread(attempts)
    assert first == second


class First:
    pass


class Second:
    pass


class Unneeded:
    pass


def test_services_are_made_on_demand_and_closed_in_reverse_order():
    told: list[str] = []

    def first():
        told.append("open first")
        yield First()
        told.append("close first")

    def second():
        told.append("open second")
        yield Second()
        told.append("close second")
        raise RuntimeError("closing may fail")

    def unneeded():
        told.append("unneeded")
        yield Unneeded()

    registry = svcs.Registry()
    registry.register_factory(First, first)
    registry.register_factory(Second, second)
    registry.register_factory(Unneeded, unneeded)

    @backwave.job("scope.services")
    def body(ctx: backwave.JobContext = backwave.context()) -> None:
        ctx.services.get(First)
        ctx.services.get(Second)
        told.append("body")
        raise ValueError("what follows the yields runs all the same")

    ended = Bench(registry=registry).run(body)
    assert isinstance(ended, e.AttemptFailed)
    assert told == ["open first", "open second", "body", "close second", "close first"]
