"""Many seeds: what they broke, and what they reached."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.simulation.plans import Plan
from tests.simulation.scenarios import draw
from tests.simulation.shrinking import shrink
from tests.simulation.situations import NAMED
from tests.simulation.world import Report, run

Move = tuple[str, str, str]


@dataclass
class Tally:
    """What a search has seen so far."""

    seeds: int = 0
    broke: dict[str, list[int]] = field(default_factory=dict)
    seen: Counter[str] = field(default_factory=Counter)
    transitions: Counter[Move] = field(default_factory=Counter)
    levels: Counter[str] = field(default_factory=Counter)

    def add(self, report: Report) -> None:
        self.seeds += 1
        self.levels[report.plan.level] += 1
        self.seen.update(report.seen)
        self.transitions.update(report.transitions)
        if report.broke:
            self.broke.setdefault(report.broke, []).append(report.plan.seed)

    @property
    def unreached(self) -> list[str]:
        return [name for name in NAMED if not self.seen[name]]

    def lines(self) -> Iterator[str]:
        """The coverage report."""
        yield f"{self.seeds} seeds: " + ", ".join(f"{n} {k}" for k, n in self.levels.items())
        yield ""
        yield "Transitions"
        for (before, after, kind), count in sorted(self.transitions.items()):
            yield f"  {before:>13} -> {after:13} by {kind:13} {count:9}"
        yield ""
        yield "Situations"
        for name in sorted(self.seen | dict.fromkeys(NAMED, 0)):
            yield f"  {name:40} {self.seen[name]:9}"
        yield ""
        yield "Never reached: " + (", ".join(self.unreached) or "nothing")
        for broke, seeds in self.broke.items():
            yield f"BROKEN {broke}: seeds {', '.join(map(str, seeds[:10]))}"


def search(
    seeds: Iterable[int],
    *,
    failed: Callable[[Report], object],
    enough: Callable[[], bool] = lambda: False,
) -> Tally:
    """Run seeds until there is no other, or enough of them; go on after a failure."""
    tally = Tally()
    for seed in seeds:
        if enough():
            break
        report = run(draw(seed))
        tally.add(report)
        if report.broke:
            failed(report)
    return tally


def keep(report: Report, *, folder: Path) -> Path:
    """Write the plan of a failure, as small as it gets, to a file that can be replayed."""
    plan: Plan = shrink(report.plan)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{report.broke}-{plan.seed}.json"
    path.write_text(plan.dump())
    return path
