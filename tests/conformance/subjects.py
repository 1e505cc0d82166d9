"""The stores under test, each with what the contract has no verb for."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from uuid import UUID

from django.db import connection
from django.db.models import Model

from backwave_django import models
from backwave_django.core.contract import Store, StoreSettings
from backwave_django.core.memory import MemoryStore, Snapshot
from backwave_django.store.adapter import DatabaseStore
from backwave_django.store.executors import DjangoExecutor, open_pump_store
from tests.builders import MINUTE, uid
from tests.conformance.observing import observe_database


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A store, a look at its state, and ways to do to it what only faults do."""

    store: Store
    observe: Callable[[], Snapshot]
    #: A transaction around the block; the reference has none that could be rolled back.
    transaction: Callable[[], AbstractContextManager[None]]
    #: Another transaction holds the row of this job (or of its lease) inside the block.
    hold_job: Callable[[UUID], AbstractContextManager[None]]
    hold_lease: Callable[[UUID], AbstractContextManager[None]]
    hold_schedule: Callable[[str], AbstractContextManager[None]]
    #: The row vanishes, and nothing else does.
    lose_lease: Callable[[UUID], None]
    lose_job: Callable[[UUID], None]


def memory_subject(settings: StoreSettings) -> Subject:
    """The reference store, with a clock that moves a little at each look."""
    ticks, leases = count(1), count(10**30)
    began = datetime(2001, 1, 1, tzinfo=UTC)
    store = MemoryStore(
        clock=lambda: began + next(ticks) * timedelta(milliseconds=1),
        ids=lambda: uid(next(leases)),
        settings=settings,
    )

    @contextmanager
    def hold(row_id: UUID) -> Iterator[None]:
        store.hold(row_id)
        yield
        store.release(row_id)

    @contextmanager
    def hold_schedule(name: str) -> Iterator[None]:
        store.tables.held_schedules.add(name)
        yield
        store.tables.held_schedules.discard(name)

    def lose_lease(job_id: UUID) -> None:
        store.tables.drop_lease(store.tables.lease_of[job_id])

    def lose_job(job_id: UUID) -> None:
        job = store.tables.jobs.pop(job_id)
        assert job.state is not None
        del store.tables.by_state[job.state][job_id]

    return Subject(
        store=store,
        observe=store.snapshot,
        transaction=nullcontext,
        hold_job=hold,
        hold_lease=lambda job_id: hold(store.tables.lease_of[job_id].id),
        hold_schedule=hold_schedule,
        lose_lease=lose_lease,
        lose_job=lose_job,
    )


def django_subject(settings: StoreSettings) -> Subject:
    """A store on Django's connection of this thread."""
    return database_subject(DatabaseStore(DjangoExecutor("default"), settings, exact=True))


def pump_subject(settings: StoreSettings) -> Subject:
    """A store on a connection of its own; the caller closes it."""
    store = open_pump_store(
        "default", settings, application_name="conformance", lease_duration=MINUTE
    )
    return database_subject(store)


def database_subject(store: DatabaseStore) -> Subject:
    """A store of this run's database, observed through Django's connection."""
    return Subject(
        store=store,
        observe=observe_database,
        transaction=store.executor.transaction,
        hold_job=lambda job_id: held_row(models.Job, id=job_id),
        hold_lease=lambda job_id: held_row(models.Lease, job_id=job_id),
        hold_schedule=lambda name: held_row(models.Schedule, name=name),
        lose_lease=lambda job_id: _delete(models.Lease, job_id=job_id),
        lose_job=lambda job_id: _delete(models.Job, id=job_id),
    )


@contextmanager
def held_row(model: type[Model], **which: UUID | str) -> Iterator[None]:
    """Lock a row in a transaction of a second connection."""
    where, value = next(iter(which.items()))
    other = connection.copy("default")
    try:
        other.set_autocommit(False)
        with other.cursor() as cursor:
            table = other.ops.quote_name(model._meta.db_table)
            cursor.execute(f"SELECT 1 FROM {table} WHERE {where} = %s FOR UPDATE", [value])  # noqa: S608 - names of ours
            yield
        other.rollback()
    finally:
        other.close()


def _delete(model: type[Model], **which: UUID) -> None:
    model._default_manager.filter(**which)._raw_delete("default")
