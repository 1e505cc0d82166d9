"""What a pump asks of a claim, and when it stops asking for good."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backwave_django.core.commands import Claim
from backwave_django.core.contract import ClaimRequest
from backwave_django.core.dispatch import Dispatcher

if TYPE_CHECKING:
    from datetime import datetime

    from backwave_django.core.contract import ClaimAnswer
    from backwave_django.core.dials import DriverConfig

#: Lanes that hints spoke of since the last claim; past this many, a claim looks everywhere anyway.
MAX_HINTED_LANES = 64


class Claiming:
    """Builds claims, and applies the stop rule. ``open`` says whether more will be claimed."""

    def __init__(self, config: DriverConfig) -> None:
        self._config = config
        self._dispatcher = Dispatcher(queues=config.queues, weights=config.weights)
        self._hinted: dict[tuple[str, int], None] = {}
        self._key_cursor = ""
        self._begun = 0
        self.open = True

    def hinted(self, *, queue: str, priority: int) -> bool:
        """Note a lane for the next claim to look at; false for a queue that is not served."""
        if queue not in self._config.queues:
            return False
        if len(self._hinted) < MAX_HINTED_LANES:
            self._hinted[(queue, priority)] = None
        return True

    def size(self, free: int) -> int:
        """Return how many of ``free`` slots the next claims may fill."""
        size = min(free, self._config.max_claim_batch) if self.open else 0
        if self._config.stop.max_jobs is not None:
            size = min(size, self._config.stop.max_jobs - self._begun)
        return max(0, size)

    def claims(self, size: int) -> tuple[Claim, ...]:
        """Return the claims that fill ``size`` slots."""
        hinted, self._hinted = tuple(self._hinted), {}
        return tuple(
            Claim(
                request=ClaimRequest(
                    pump_id=self._config.pump_id,
                    queues=share.queues,
                    limit=share.limit,
                    lease_duration=self._config.lease_duration,
                    retries=self._config.retries,
                    hinted=hinted,
                    key_cursor=self._key_cursor,
                )
            )
            for share in self._dispatcher.shares(size)
        )

    def answered(self, answer: ClaimAnswer, *, idle: bool, now: datetime) -> None:
        """Take in an answer; ``idle`` says that the pump holds nothing."""
        self._key_cursor = answer.key_cursor
        self._begun += len(answer.jobs)
        stop = self._config.stop
        nothing_due = answer.next_due is None or answer.next_due > now
        done = idle and answer.short and not answer.jobs and nothing_due
        spent = stop.max_jobs is not None and self._begun >= stop.max_jobs
        if stop.once or spent or (stop.when_idle and done):
            self.open = False
