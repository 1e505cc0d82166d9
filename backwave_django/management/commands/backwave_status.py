"""``manage.py backwave_status``."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand

from backwave_django import monitor
from backwave_django.management.speaking import tell_alerts

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Iterator, Sequence

#: What the process exits with when work is not being done.
NEEDS_ATTENTION = 2


class Command(BaseCommand):
    """Say how things stand."""

    help = (
        "Say how things stand: what needs a person, queues, pumps, jobs by state. Exits with 2 if "
        "work is not being done, 0 else. Counts stop at 10,000."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take a format."""
        parser.add_argument(
            "--format", choices=["text", "json"], default="text", help="Default: text."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Say it."""
        clock = monitor.database_clock()
        alerts = monitor.alerts(clock=clock)
        queues = monitor.queue_views(clock=clock)
        pumps = monitor.pump_views(clock=clock)
        if options["format"] == "json":
            self._write_json(alerts, queues, pumps)
        else:
            self._write_text(alerts, queues, pumps)
        if any(alert.severe for alert in alerts):
            sys.exit(NEEDS_ATTENTION)

    def _write_text(
        self,
        alerts: Sequence[monitor.Alert],
        queues: Sequence[monitor.QueueView],
        pumps: Sequence[monitor.PumpView],
    ) -> None:
        tell_alerts(self, alerts)
        self.stdout.write(f"{'queue':<24}{'running':>9}{'due':>9}{'later':>9}{'pumps':>7}")
        for queue in queues:
            counts = queue.counts
            columns = "".join(f"{n!s:>9}" for n in (counts.running, counts.due, counts.later))
            mark = "".join(f"  {word}" for word in _marks(queue))
            self.stdout.write(f"{queue.name:<24}{columns}{len(queue.pumps):>7}{mark}")
        for view in pumps:
            pump = view.pump
            slots = f"{pump.executing}/{pump.pool_size}"
            silent = monitor.span(view.silent)
            self.stdout.write(f"pump {pump}: {view.pulse}, {slots} slots, seen {silent} ago")
        jobs = ", ".join(f"{count} {state}" for state, count in monitor.job_counts().items())
        self.stdout.write(f"jobs: {jobs}")

    def _write_json(
        self,
        alerts: Sequence[monitor.Alert],
        queues: Sequence[monitor.QueueView],
        pumps: Sequence[monitor.PumpView],
    ) -> None:
        status = {
            "healthy": not any(alert.severe for alert in alerts),
            "alerts": [alert._asdict() for alert in alerts],
            "queues": [_queue(view) for view in queues],
            "pumps": [_pump(view) for view in pumps],
            "jobs": {state: count._asdict() for state, count in monitor.job_counts().items()},
        }
        self.stdout.write(json.dumps(status, indent=2))


def _marks(view: monitor.QueueView) -> Iterator[str]:
    """What a line says of a queue beside its counts."""
    sources = view.sources
    if view.paused:
        yield "paused"
    if view.cap.number is not None:
        yield f"limit {view.cap.number} ({sources['limit']})"
    if view.cap.rate is not None:
        token = view.next_token
        used_up = "" if token is None else f", next in {monitor.span(token - view.clock)}"
        yield f"rate {view.cap.rate} ({sources['rate']}{used_up})"
    if view.window is not None:
        opening = view.opens_at
        state = "open" if opening is None else f"opens in {monitor.span(opening - view.clock)}"
        yield f"window {view.window} ({sources['window']}, {state})"


def _queue(view: monitor.QueueView) -> dict[str, object]:
    counts = view.counts
    return {
        "name": view.name,
        "paused": view.paused,
        "limit": view.cap.number,
        "rate": view.cap.rate and str(view.cap.rate),
        "next_token": view.next_token and view.next_token.isoformat(),
        "window": view.window,
        "opens_at": view.opens_at and view.opens_at.isoformat(),
        "set_by": dict(view.sources),
        "running": counts.running._asdict(),
        "due": counts.due._asdict(),
        "later": counts.later._asdict(),
        "oldest_due": counts.oldest_due and counts.oldest_due.isoformat(),
        "pumps": len(view.pumps),
    }


def _pump(view: monitor.PumpView) -> dict[str, object]:
    pump = view.pump
    return {
        "id": str(pump.pk),
        "group": pump.group,
        "hostname": pump.hostname,
        "pid": pump.pid,
        "version": pump.version,
        "queues": pump.queues,
        "pulse": view.pulse,
        "silent_seconds": view.silent.total_seconds(),
        "executing": pump.executing,
        "slots": pump.pool_size,
    }
