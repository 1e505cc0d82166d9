"""Checks of ``settings.BACKWAVE`` and of the names it mentions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.core import checks
from django.utils.module_loading import import_string

from backwave_django import conf
from backwave_django.jobs.registry import registry

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


TAG = "backwave"


@checks.register(TAG)
def check_dials(**_kwargs: object) -> list[checks.CheckMessage]:
    """Report each value of ``BACKWAVE`` that cannot work, and a project without time zones."""
    found: list[checks.CheckMessage] = [
        checks.Error(problem.text, hint=problem.hint, id=f"backwave.{problem.code}")
        for problem in conf.problems()
    ]
    if not settings.USE_TZ:
        found.append(
            checks.Error(
                "USE_TZ is False, and due times, leases and deadlines need time zones.",
                hint="Write USE_TZ = True.",
                id="backwave.E030",
            )
        )
    return found


@checks.register(TAG)
def check_paths(**_kwargs: object) -> list[checks.CheckMessage]:
    """Report dotted paths in ``BACKWAVE`` that lead to nothing callable."""
    if conf.problems():
        return []
    config = conf.get_config()
    paths = [("SERVICES", config.services, "E021")]
    paths += [("MIDDLEWARE", path, "E022") for path in config.middleware]
    return [
        checks.Error(
            f'BACKWAVE["{key}"] names {path!r}: {problem}',
            hint="Write the dotted path of a function that can be imported.",
            id=f"backwave.{code}",
        )
        for key, path, code in paths
        if path is not None
        for problem in _problems_of(path)
    ]


def _problems_of(path: str) -> Iterator[str]:
    try:
        target = import_string(path)
    except ImportError as error:
        yield f"{error}."
    else:
        if not callable(target):
            yield f"it is a {type(target).__name__}, which cannot be called."


@checks.register(TAG)
def check_queues(**_kwargs: object) -> list[checks.CheckMessage]:
    """Report job types whose queue no group serves: their jobs would wait for ever."""
    if conf.problems():
        return []
    served = conf.get_config().queues
    stranded: dict[str, list[str]] = {}
    for job_type in registry.all():
        if job_type.queue not in served:
            stranded.setdefault(job_type.queue, []).append(job_type.wire_name)
    return [
        checks.Warning(
            f"No group serves the queue {queue!r} of {_listed(sorted(names))}.",
            hint=f'Add "{queue}" to the QUEUES of a group in BACKWAVE["GROUPS"].',
            id="backwave.W001",
        )
        for queue, names in sorted(stranded.items())
    ]


def _listed(names: Sequence[str]) -> str:
    rest = len(names) - 3
    shown = ", ".join(names[:3])
    return f"{shown} and {rest} more" if rest > 0 else shown
