"""What was seen while it ran: by the watcher, by who starts processes, and by the server."""

import re
from collections.abc import Iterator

from tests.torture.evidence import Evidence

Found = Iterator[tuple[str, str]]

#: Errors of the server that come of what was done to it, or of waiting for a bounded time.
_HARMLESS = re.compile(
    r"canceling statement|terminating connection|lock timeout|idle-in-transaction"
    r"|the database system is|current transaction is aborted|connection to client lost"
)
#: A key that was taken between the look and the write: the savepoint around it is the answer.
_EXPECTED = re.compile(r'duplicate key value violates unique constraint ".*unique_live')
_ERROR = re.compile(r"(?:ERROR|PANIC):\s+(.*)")


def watching(evidence: Evidence) -> Found:
    """One look at all leases never shows what must not be."""
    for told in evidence.told("watch.broke"):
        yield told["id"], told["detail"]


def processes(evidence: Evidence) -> Found:
    """Pumps go on or drain; enqueueing and operating raise nothing but outages."""
    for told in evidence.told("pump.broke"):
        yield "pumps-go-on", f"{told['name']}: {told['how']}"
    for what in ("client.broke", "enqueue.broke", "operator.broke"):
        for told in evidence.told(what):
            yield "clients-see-outages-only", f"{what}: {dict(told)}"


def server(evidence: Evidence) -> Found:
    """No deadlock, and nothing that a server complains about but what was done to it."""
    for line in evidence.server_log.splitlines():
        found = _ERROR.search(line)
        if found is None or _HARMLESS.search(line):
            continue
        if "deadlock detected" in line:
            yield "no-deadlock", line
        elif not _EXPECTED.search(line):
            yield "server-has-no-complaint", line


CHECKS = (watching, processes, server)
