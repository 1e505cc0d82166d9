"""Enqueueing: new jobs go into the caller's transaction, which this never commits or waits in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backwave_django.core.jobs import Enqueued
from backwave_django.core.states import JobState
from backwave_django.store.hints import announce
from backwave_django.store.inserting import insert_plain
from backwave_django.store.relations import enqueue_related

if TYPE_CHECKING:
    from collections.abc import Sequence

    from backwave_django.core.jobs import NewJob
    from backwave_django.store.room import Room


def enqueue(room: Room, jobs: Sequence[NewJob]) -> tuple[Enqueued, ...]:
    """Insert ``jobs``; see ``Store.enqueue``."""
    if any(job.unique_key is not None or job.parents for job in jobs):
        answers = enqueue_related(room, jobs)
    else:
        insert_plain(room, jobs)
        answers = tuple(Enqueued(job.id, created=True, state=JobState.SCHEDULED) for job in jobs)
    # A job that is due later wakes nobody; a minted one is due.
    announce(
        room,
        [
            (job.queue, job.priority)
            for job, answer in zip(jobs, answers, strict=True)
            if answer.created and (job.due_at is None or job.schedule is not None)
        ],
    )
    return answers
