"""Medians, ratios and a table that a person reads."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

#: The figure by which a workload is compared; the others are context.
HEADLINE = {
    "noop": "rate_to_body",
    "sleep": "rate_to_body",
    "orm": "rate_to_body",
    "enqueue-single": "rate",
    "enqueue-atomic": "rate",
    "enqueue-many": "rate",
    "latency": "p50_ms",
    "idle": "statements_per_minute",
    "recovery": "recovered_s",
    "flat-backlog": "flatness",
    "flat-future": "flatness",
    "flat-finished": "flatness",
    "flat-snapshot": "flatness",
    "flat-stale": "flatness",
}


def medians(lines: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Fold the repeats of one contestant and workload into their medians."""
    folded: dict[str, Any] = {}
    for key in lines[0]:
        values = [line[key] for line in lines]
        numbers = [value for value in values if isinstance(value, int | float)]
        if len(numbers) == len(values) and not isinstance(values[0], bool):
            folded[key] = statistics.median(numbers)
        elif isinstance(values[0], bool):
            folded[key] = all(values)
        else:
            folded[key] = values[0]
    return folded


def ratio(workload: str, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> float | None:
    """Ours over theirs by the headline figure; ``None`` when one of them has none."""
    key = HEADLINE[workload]
    mine, other = ours.get(key), theirs.get(key)
    return mine / other if mine and other else None


def table(rows: Iterable[Mapping[str, Any]]) -> str:
    """Lay out the median lines, one block a workload."""
    blocks: list[str] = []
    for row in rows:
        title = f"{row['workload']:15} {row['contestant']:16}"
        skipped = {"workload", "contestant", "environment", "database", "repeats"}
        figures = "  ".join(
            f"{key}={_short(value)}" for key, value in row.items() if key not in skipped
        )
        blocks.append(f"{title} {figures}")
    return "\n".join(blocks)


def _short(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
