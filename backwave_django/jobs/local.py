"""The scope of a body that is called like any function."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from backwave_django.core.jobs import LeasedJob
from backwave_django.jobs import services
from backwave_django.jobs.context import JobContext, Signals, current
from backwave_django.jobs.ids import instant_of, new_id
from backwave_django.jobs.tags import NO_TAGS

if TYPE_CHECKING:
    from collections.abc import Iterator

    import svcs


@contextmanager
def local_attempt(wire_name: str, *, queue: str) -> Iterator[JobContext]:
    """Yield the context of an attempt that no pump knows of; close its services at the end.

    Inside the body of a job it shares that body's signals: who is asked to stop, stops here too.
    """
    opened: list[svcs.Container] = []

    def open_services() -> svcs.Container:
        opened.append(services.new_container())
        return opened[0]

    outer = current()
    try:
        yield JobContext(
            _unstored(wire_name, queue=queue),
            max_attempts=1,
            signals=Signals() if outer is None else outer.signals,
            services=open_services,
            progress=_unheard,
            stored=False,
        )
    finally:
        for container in opened:
            container.close()


def _unheard(_done: int, _total: int | None, _message: str) -> None:
    """Progress of a body that nobody watches."""


def _unstored(wire_name: str, *, queue: str) -> LeasedJob:
    job_id = new_id()
    now = instant_of(job_id)
    return LeasedJob(
        lease_id=new_id(),
        job_id=job_id,
        wire_name=wire_name,
        queue=queue,
        run=1,
        spent=0,
        payload="{}",
        payload_version=1,
        tags=NO_TAGS,
        due_at=now,
        deadline=None,
        limit_key=None,
        unroutable_since=None,
        schedule=None,
        scheduled_for=None,
        workflow=None,
        trace=None,
        retry="",
        expires_at=now,
    )
