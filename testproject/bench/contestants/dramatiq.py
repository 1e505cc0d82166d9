"""dramatiq with Redis, on its Django integration. Needs a Redis server: ``REDIS_URL``."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import dramatiq
import redis

from testproject.bench import bodies

URL = os.environ.get("REDIS_URL", "redis://127.0.0.1:6379/9")
ACTORS = {
    name: dramatiq.actor(body, actor_name=f"bench.{name}", queue_name="bench")
    for name, body in bodies.BODIES.items()
}


class Contestant:
    """``rundramatiq`` with one process."""

    vendors = ("postgresql", "sqlite")

    def prepare(self) -> None:
        """Make sure that Redis answers; say how to get one if not."""
        try:
            redis.Redis.from_url(URL).ping()
        except redis.ConnectionError as error:
            raise SystemExit(
                f"dramatiq needs a Redis at {URL}: install redis-server and start it, "
                "or set REDIS_URL"
            ) from error

    def clear(self) -> None:
        """Empty this database of the server."""
        redis.Redis.from_url(URL).flushdb()

    def enqueue(self, body: str, number: int) -> None:
        """Send one message."""
        ACTORS[body].send(number)

    def enqueue_many(self, body: str, numbers: Sequence[int]) -> bool:
        """It has no bulk call."""
        return False

    def worker(self, *, slots: int) -> list[str]:
        """The documented command, told where the actors are."""
        manage = [sys.executable, "testproject/manage.py", "rundramatiq"]
        return [*manage, "--processes", "1", "--threads", str(slots), "--path", str(Path.cwd())]

    def unfinished(self) -> int:
        """Messages that wait or are not acknowledged."""
        client = redis.Redis.from_url(URL)
        return sum(client.hlen(key) for key in client.keys("dramatiq:*.msgs"))
