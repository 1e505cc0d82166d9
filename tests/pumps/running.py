"""A node on threads of the test's own process, on the test's database."""

import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from django.conf import settings
from django.db import connections

from backwave_django import conf
from backwave_django.core.dials import StopRule
from backwave_django.pumps.nodes import Node
from backwave_django.pumps.plans import plan_node
from tests.pumps.waiting import PATIENCE_SECONDS

QUICK = {"POLL_INTERVAL": 0.1, "MAINTENANCE_INTERVAL": 0.2}


class RunningNode:
    """Pumps of one group ``test`` as long as it is entered; ``code`` says how they ended."""

    def __init__(
        self, *, stop: StopRule | None = None, health_file: Path | None = None, **dials: Any
    ) -> None:
        values = {"GROUPS": {"test": {"POOL_SIZE": 4, **QUICK, **dials}}}
        config, problems = conf.read(values, databases=tuple(settings.DATABASES))
        assert not problems, problems
        plan = plan_node(config, groups=["test"], stop=stop, health_file=health_file)
        self.node = Node(plan, config=config)
        self.code: int | None = None
        self._thread = threading.Thread(target=self._run, name="test-node", daemon=True)

    def _run(self) -> None:
        try:
            self.code = self.node.run()
        finally:
            connections.close_all()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.node.drain()
        self.join()

    def join(self, *, seconds: float = PATIENCE_SECONDS) -> int | None:
        """Wait for the end; return the exit code."""
        self._thread.join(seconds)
        assert not self._thread.is_alive(), "the node did not end"
        return self.code
