"""The job manifest: every wire name with its queue and parameters, as a file to be committed.

A change of what waiting jobs rely on then shows in a diff, and the ones that would leave jobs
behind can be refused before they are released.
"""

from __future__ import annotations

import inspect
import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from backwave_django.core.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Set

    from backwave_django.jobs.job_type import JobType

#: What is written per wire name: queue, version, aliases and parameters.
Entry: TypeAlias = "dict[str, Any]"

_OPTIONAL: Final = " = ..."
_STARS: Final[dict[object, str]] = {
    inspect.Parameter.VAR_POSITIONAL: "*",
    inspect.Parameter.VAR_KEYWORD: "**",
}


class Change(NamedTuple):
    """One difference from the committed manifest. ``breaks``: waiting jobs would be left behind."""

    wire_name: str
    text: str
    breaks: bool


def entries(job_types: Iterable[JobType[Any, Any]]) -> dict[str, Entry]:
    """Return the manifest of ``job_types`` by wire name, in order."""
    described = {each.wire_name: _entry(each) for each in job_types}
    return dict(sorted(described.items()))


def render(manifest: Mapping[str, Entry]) -> str:
    """Return the manifest as the text of its file: JSON with one wire name a line."""
    lines = [f"  {json.dumps(name)}: {json.dumps(entry)}" for name, entry in manifest.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n" if lines else "{}\n"


def parse(text: str) -> dict[str, Entry]:
    """Return what ``render`` wrote. Raises ``ConfigurationError`` for anything else."""
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ConfigurationError(f"The job manifest is not JSON: {error}.") from None
    if not isinstance(found, dict) or not all(isinstance(each, dict) for each in found.values()):
        raise ConfigurationError("The job manifest is not an object of objects.", "Write it anew.")
    return found


def changes(committed: Mapping[str, Entry], now: Mapping[str, Entry]) -> tuple[Change, ...]:
    """Return how ``now`` differs from the ``committed`` manifest, by wire name."""
    aliases = {alias: name for name, entry in now.items() for alias in entry["aliases"]}
    found: list[Change] = []
    for name, before in committed.items():
        after = now.get(aliases.get(name, name))
        if after is None:
            found.append(
                Change(name, "it is gone: jobs that wait under it need it as an alias", breaks=True)
            )
        else:
            found.extend(_differences(name, before, after))
            found.extend(_alias_changes(name, before, after, names=now.keys() | aliases.keys()))
    found.extend(Change(name, "it is new", breaks=False) for name in now if name not in committed)
    return tuple(sorted(found))


def _entry(job_type: JobType[Any, Any]) -> Entry:
    return {
        "queue": job_type.queue,
        "version": job_type.version,
        "aliases": sorted(job_type.aliases),
        "parameters": [_parameter(p) for p in job_type.parameters.signature.parameters.values()],
    }


def _parameter(parameter: inspect.Parameter) -> str:
    text = _STARS.get(parameter.kind, "") + parameter.name
    if parameter.annotation is not inspect.Parameter.empty:
        text += f": {inspect.formatannotation(parameter.annotation)}"
    return text if parameter.default is inspect.Parameter.empty else text + _OPTIONAL


def _differences(name: str, before: Entry, after: Entry) -> Iterator[Change]:
    if before.get("queue") != after["queue"]:
        text = f"its queue is {after['queue']}, it was {before.get('queue')}"
        yield Change(name, text, breaks=False)
    if before.get("version", 1) > after["version"]:
        text = f"its version went back to {after['version']} from {before['version']}"
        yield Change(name, text, breaks=True)
    if before.get("parameters") != after["parameters"]:
        raised = after["version"] > before.get("version", 1)
        yield from _parameter_changes(name, before, after, forgiven=raised)


def _alias_changes(name: str, before: Entry, after: Entry, *, names: Set[str]) -> Iterator[Change]:
    """Jobs may wait under an alias as well: one that vanishes leaves them behind."""
    for alias in sorted({*before.get("aliases", ())} - names):
        text = f"its alias {alias} is gone: jobs that wait under it need it"
        yield Change(name, text, breaks=True)
    for alias in sorted({*after["aliases"]} - {name, *before.get("aliases", ())}):
        yield Change(name, f"it has the alias {alias}", breaks=False)


def _parameter_changes(
    name: str, before: Entry, after: Entry, *, forgiven: bool
) -> Iterator[Change]:
    """A raised version says that upcasters take care of older payloads."""
    old, new = _by_name(before.get("parameters", ())), _by_name(after["parameters"])
    takes_any = any(text.startswith("**") for text in new.values())
    for parameter in old.keys() - new.keys():
        breaks = not (forgiven or takes_any or old[parameter].startswith("*"))
        yield Change(name, f"it no longer takes {old[parameter]}", breaks=breaks)
    for parameter in new.keys() - old.keys():
        needed = not new[parameter].endswith(_OPTIONAL) and not new[parameter].startswith("*")
        yield Change(name, f"it takes {new[parameter]}", breaks=needed and not forgiven)
    for parameter in old.keys() & new.keys():
        if old[parameter] != new[parameter]:
            text = f"it takes {new[parameter]}, it took {old[parameter]}"
            yield Change(name, text, breaks=False)


def _by_name(parameters: Iterable[str]) -> dict[str, str]:
    return {text.removesuffix(_OPTIONAL).partition(":")[0]: text for text in parameters}
