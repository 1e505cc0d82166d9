"""Runs bodies the way a worker does, without a store: one thread, one attempt after the other."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

import svcs

import backwave_django as backwave
from backwave_django.core.events import AttemptEnded
from backwave_django.core.jobs import LeasedJob
from backwave_django.jobs.ids import new_id
from backwave_django.jobs.payload import encode_call
from backwave_django.pumps.atomic import Transactions
from backwave_django.pumps.attempts import Assignment, Attempts
from backwave_django.pumps.clock import SystemClock
from backwave_django.pumps.progress import ProgressBoard
from backwave_django.pumps.scope import Scopes
from backwave_django.store import default_store

T0 = datetime(2040, 1, 1, tzinfo=UTC)
RETRY = backwave.Retry(max_attempts=3)


def leased(body: Any, *args: object, **fields: Any) -> LeasedJob:
    """A job of ``body`` under a lease; ``fields`` replace what a test cares about."""
    number = new_id()
    values: dict[str, Any] = {
        "lease_id": new_id(),
        "job_id": number,
        "wire_name": body if isinstance(body, str) else body.wire_name,
        "queue": "default",
        "run": 1,
        "spent": 0,
        "payload": encode_call(args, {}),
        "payload_version": 1,
        "tags": "{}",
        "due_at": T0,
        "deadline": None,
        "limit_key": None,
        "unroutable_since": None,
        "schedule": None,
        "scheduled_for": None,
        "workflow": None,
        "trace": None,
        "retry": RETRY.encode(),
        "expires_at": T0 + timedelta(minutes=1),
    }
    return LeasedJob(**(values | fields))


class Bench:
    """One worker thread's worth of attempts, on the calling thread."""

    def __init__(
        self,
        *,
        registry: svcs.Registry | None = None,
        reuse_connections: bool = False,
        middleware: tuple[Any, ...] = (),
    ) -> None:
        self.progress = ProgressBoard()
        clock = SystemClock()
        self.attempts = Attempts(
            clock=clock,
            scopes=Scopes(
                new_container=partial(svcs.Container, registry or svcs.Registry()),
                reuse_connections=reuse_connections,
            ),
            progress=self.progress,
            transactions=Transactions(
                open_store=default_store, clock=clock, patience=timedelta(seconds=10)
            ),
            middleware=middleware,
        )
        self.attempts.warm()

    def run(self, body: Any, *args: object, **fields: Any) -> AttemptEnded:
        """Run one attempt and return the event it ends with."""
        return self.attempts.run(Assignment(leased(body, *args, **fields)))


def on_a_thread(call: Callable[[], Any]) -> Any:
    """Return what ``call`` returns on a new thread, which has nothing from this one."""
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(call()), daemon=True)
    thread.start()
    thread.join(30)
    assert answers, "the thread did not answer"
    return answers[0]


@contextmanager
def body_of(function: Callable[..., Any], **options: Any) -> Iterator[Any]:
    """A job type around ``function`` under a name of its own."""
    yield backwave.job(f"bench.{UUID(int=new_id().int).hex}", **options)(function)
