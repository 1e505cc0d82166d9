"""The audit: every invariant that can be read off what is left, each under its id.

A check gets the evidence and yields what contradicts an invariant. It is a list of all of them,
so that one broken run says all it has to say.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from tests.torture import graphs, histories, logs, promises, reactions
from tests.torture.evidence import Evidence

Check = Callable[[Evidence], Iterator[tuple[str, str]]]

CHECKS: tuple[Check, ...] = (
    *histories.CHECKS,
    *graphs.CHECKS,
    *promises.CHECKS,
    *reactions.CHECKS,
    *logs.CHECKS,
)


class Violation(NamedTuple):
    """One contradiction: the id of the invariant, and what was found."""

    id: str
    detail: str


def audit(evidence: Evidence) -> list[Violation]:
    """Return everything that must not be."""
    return [Violation(*found) for check in CHECKS for found in check(evidence)]


def summary(violations: Iterable[Violation], *, most: int = 5) -> list[str]:
    """Say how often each invariant was broken, and show some cases."""
    counts = Counter(violation.id for violation in violations)
    lines = []
    for broken, count in sorted(counts.items()):
        lines.append(f"{broken}: {count}")
        shown = [v.detail for v in violations if v.id == broken][:most]
        lines += [f"    {detail}" for detail in shown]
    return lines
