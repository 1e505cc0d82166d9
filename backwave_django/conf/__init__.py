"""The authority on ``settings.BACKWAVE``: its keys, their defaults, and what is wrong with them.

``get_config`` gives the rest of the package frozen values. ``problems`` lists everything that
cannot work, each with the id under which ``checks`` reports it and a sentence that says what to
write instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import cache
from types import MappingProxyType

from django.conf import settings
from django.core.signals import setting_changed
from django.db import DEFAULT_DB_ALIAS
from django.dispatch import receiver

from backwave_django.conf import defaults
from backwave_django.conf.config import Config, GroupConfig
from backwave_django.conf.reader import Problem, Reader, in_words, is_count, is_name
from backwave_django.core import bounds
from backwave_django.core.contract import History
from backwave_django.core.errors import ConfigurationError
from backwave_django.core.retention import Retention
from backwave_django.core.retries import Retry

SECOND = timedelta(seconds=1)

#: The check id of each dial. A key that is not here is not a setting.
TOP_CODES = {
    "DATABASE": "E003",
    "GROUPS": "E004",
    "RETRY": "E017",
    "RETENTION": "E020",
    "SERVICES": "E021",
    "MIDDLEWARE": "E022",
    "UNROUTABLE_GRACE": "E023",
    "HISTORY": "E024",
    "POOLER": "E025",
    "DIRECT_URL": "E026",
    "HINTS": "E027",
    "EXPOSE_SENSITIVE": "E028",
    "SCHEDULES": "E029",
    "WINDOWS": "E034",
    "LIMITS": "E037",
}
GROUP_CODES = {
    "QUEUES": "E006",
    "POOL_SIZE": "E007",
    "PUMPS": "E008",
    "MAX_CLAIM_BATCH": "E009",
    "MAX_OUTCOME_BATCH": "E010",
    "POLL_INTERVAL": "E011",
    "MAX_POLL_INTERVAL": "E012",
    "MAINTENANCE_INTERVAL": "E013",
    "LEASE_DURATION": "E014",
    "HEARTBEAT_INTERVAL": "E015",
    "SHUTDOWN_TIMEOUT": "E016",
    "RETRY": "E017",
    "PURGE": "E018",
    "CONNECTIONS": "E019",
}
RETRY_KEYS = ("MAX_ATTEMPTS", "INITIAL", "MULTIPLIER", "MAXIMUM", "JITTER")
RETENTION_KEYS = (
    "SUCCEEDED",
    "CANCELLED",
    "EXPIRED",
    "DEAD_LETTERED",
    "QUARANTINED",
    "OPERATOR_ACTIONS",
    "DEAD_PUMPS",
)
DEFAULT_OWNER = "default"
#: What a column for large whole numbers holds.
MAX_RELEASE = 2**63 - 1
SCHEDULES_KEYS = ("OWNER", "RELEASE")
DEFAULT_GROUPS: Mapping[object, object] = {"default": {}}
_PATH_HINT = 'Write a dotted path, "shop.services.register", or None.'
_PATHS_HINT = 'Write a list of dotted paths, ["shop.jobs.middleware"].'
_URL_HINT = 'Write "postgres://user:password@host:port/name", past the pooler, or None.'

__all__ = ["Config", "GroupConfig", "Problem", "get_config", "problems", "read"]


def get_config() -> Config:
    """Return the settings. Raises ``ConfigurationError`` that names all that is wrong."""
    config, found = _load()
    if found:
        lines = [f"{problem.text} {problem.hint}" for problem in found]
        raise ConfigurationError("\n".join(lines))
    return config


def problems() -> tuple[Problem, ...]:
    """Return what is wrong with the settings, in the order of the keys."""
    return _load()[1]


@cache
def _load() -> tuple[Config, tuple[Problem, ...]]:
    return read(getattr(settings, "BACKWAVE", {}), databases=tuple(settings.DATABASES))


@receiver(setting_changed)
def _forget(*, setting: str, **_kwargs: object) -> None:
    if setting in {"BACKWAVE", "DATABASES"}:
        _load.cache_clear()


def read(values: object, *, databases: Sequence[str]) -> tuple[Config, tuple[Problem, ...]]:
    """Return what ``values`` says, and what is wrong with it.

    Where something is wrong the config has the default: it is then good for further checks only.
    """
    top = Reader("BACKWAVE", values, TOP_CODES, unknown="E002", not_a_dict="E001")
    retry = _retry(top, Retry())
    owner, release = _schedules(top)
    config = Config(
        database=top.choice("DATABASE", DEFAULT_DB_ALIAS, databases),
        groups=_groups(top, retry),
        retry=retry,
        retention=_retention(top),
        services=top.optional_text("SERVICES", _PATH_HINT),
        middleware=top.texts("MIDDLEWARE", _PATHS_HINT),
        unroutable_grace=top.span("UNROUTABLE_GRACE", timedelta(minutes=5), zero=True),
        history=History(top.choice("HISTORY", History.DETAIL.value, tuple(History))),
        pooler=top.optional_choice("POOLER", ("transaction",)),
        direct_url=top.optional_text("DIRECT_URL", _URL_HINT),
        hints=top.flag("HINTS", default=True),
        expose_sensitive=top.flag("EXPOSE_SENSITIVE", default=True),
        schedule_owner=owner,
        schedule_release=release,
        limits=defaults.limits(top),
        windows=defaults.windows(top),
    )
    return config, tuple(top.problems)


def _groups(top: Reader, retry: Retry) -> Mapping[str, GroupConfig]:
    given = top.values.get("GROUPS", DEFAULT_GROUPS)
    if not isinstance(given, Mapping) or not given:
        top.wrong("GROUPS", 'Write a dict of at least one group: {"default": {}}.')
        given = DEFAULT_GROUPS
    groups = {}
    for name, values in given.items():
        if not is_name(name, most=bounds.MAX_GROUP_CHARS):
            hint = f"Name each group by 1 to {bounds.MAX_GROUP_CHARS} characters."
            top.wrong("GROUPS", hint, value=f"a dict with the name {name!r}")
            continue
        reader = Reader(
            f'BACKWAVE["GROUPS"]["{name}"]',
            values,
            GROUP_CODES,
            unknown="E005",
            not_a_dict="E004",
            problems=top.problems,
        )
        groups[name] = _group(name, reader, retry)
    return MappingProxyType(groups)


def _group(name: str, reader: Reader, retry: Retry) -> GroupConfig:
    queues, weights = _queues(reader)
    claim_batch = reader.whole("MAX_CLAIM_BATCH", 32, most=bounds.MAX_BATCH)
    lease = reader.span("LEASE_DURATION", timedelta(seconds=60), least=SECOND)
    heartbeat = reader.span("HEARTBEAT_INTERVAL", lease / 3)
    if heartbeat >= lease:
        reader.wrong(
            "HEARTBEAT_INTERVAL",
            f"Write less than LEASE_DURATION ({in_words(lease)}); a third of it is the default.",
            value=in_words(heartbeat),
        )
    poll = reader.span("POLL_INTERVAL", SECOND)
    slowest = reader.optional_span("MAX_POLL_INTERVAL", None)
    if slowest is not None and slowest < poll:
        reader.wrong(
            "MAX_POLL_INTERVAL",
            f"Write at least POLL_INTERVAL ({in_words(poll)}), or None to poll evenly.",
            value=in_words(slowest),
        )
    return GroupConfig(
        name=name,
        queues=queues,
        weights=weights,
        pool_size=reader.whole("POOL_SIZE", 20),
        pumps=reader.whole("PUMPS", 1),
        max_claim_batch=claim_batch,
        max_outcome_batch=reader.whole("MAX_OUTCOME_BATCH", claim_batch, most=bounds.MAX_BATCH),
        poll_interval=poll,
        max_poll_interval=slowest,
        maintenance_interval=reader.span("MAINTENANCE_INTERVAL", timedelta(seconds=5)),
        lease_duration=lease,
        heartbeat_interval=heartbeat,
        shutdown_timeout=reader.span("SHUTDOWN_TIMEOUT", timedelta(seconds=30), zero=True),
        retry=_retry(reader, retry),
        purge=reader.flag("PURGE", default=True),
        connections=reader.choice("CONNECTIONS", "fresh", ("fresh", "reuse")),
    )


def _queues(reader: Reader) -> tuple[tuple[str, ...], Mapping[str, int] | None]:
    given = reader.values.get("QUEUES", ["default"])
    weighted = isinstance(given, Mapping)
    if not isinstance(given, Mapping | list | tuple) or not given:
        reader.wrong("QUEUES", 'Write a list of queue names, ["default"], or {name: weight}.')
        return ("default",), None
    names = tuple(given)
    if not all(is_name(name, most=bounds.MAX_QUEUE_CHARS) for name in names):
        reader.wrong("QUEUES", f"Write names of 1 to {bounds.MAX_QUEUE_CHARS} characters.")
        return ("default",), None
    if len(set(names)) < len(names):
        reader.wrong("QUEUES", "Write each queue once.")
    if not weighted:
        return tuple(dict.fromkeys(names)), None
    weights = dict(given)
    if not all(is_count(weight) for weight in weights.values()):
        reader.wrong("QUEUES", "Write a whole number, 1 or more, as the weight of each queue.")
        weights = dict.fromkeys(names, 1)
    return names, MappingProxyType(weights)


def _retry(parent: Reader, default: Retry) -> Retry:
    given = parent.values.get("RETRY", {})
    if isinstance(given, Retry):
        return given
    reader = parent.below("RETRY", given, RETRY_KEYS)
    try:
        return Retry(
            max_attempts=reader.whole("MAX_ATTEMPTS", default.max_attempts),
            initial=reader.span("INITIAL", default.initial, zero=True),
            multiplier=reader.number("MULTIPLIER", default.multiplier),
            maximum=reader.span("MAXIMUM", default.maximum, zero=True),
            jitter=reader.number("JITTER", default.jitter),
        )
    except ValueError as error:
        name, _, hint = str(error).partition(": ")
        key = name.partition("=")[0].upper()
        parent.wrong("RETRY", f"In {key}: {hint}.")
        return default


def _retention(top: Reader) -> Retention:
    default = Retention()
    reader = top.below("RETENTION", top.values.get("RETENTION", {}), RETENTION_KEYS)
    ages = {
        key.lower(): reader.optional_span(key, getattr(default, key.lower()), zero=True)
        for key in RETENTION_KEYS
    }
    return Retention(**ages)


def _schedules(top: Reader) -> tuple[str, int | None]:
    """Return who owns the schedules that the code declares, and the number of its release."""
    reader = top.below("SCHEDULES", top.values.get("SCHEDULES", {}), SCHEDULES_KEYS)
    owner = reader.values.get("OWNER", DEFAULT_OWNER)
    if not is_name(owner, most=bounds.MAX_OWNER_CHARS):
        reader.wrong("OWNER", f"Write a name of 1 to {bounds.MAX_OWNER_CHARS} characters.")
        owner = DEFAULT_OWNER
    release = reader.values.get("RELEASE")
    if release is not None and not (is_count(release) and release <= MAX_RELEASE):
        reader.wrong("RELEASE", "Write a whole number that grows with each release, or None.")
        release = None
    return owner, release
