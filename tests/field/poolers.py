"""PgBouncer between everybody and a PostgreSQL."""

import socket
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit, urlunsplit

from tests.pumps.waiting import until


class PgBouncer:
    """Pools transactions in front of the server of ``url``, as long as it is entered."""

    def __init__(self, program: str, *, url: str, directory: Path) -> None:
        self._program = program
        self._parts = urlsplit(url)
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self._port = probe.getsockname()[1]

    @property
    def url(self) -> str:
        """The ``DATABASE_URL`` of the same database through the pooler."""
        user = self._parts.username or "postgres"
        return urlunsplit(self._parts._replace(netloc=f"{user}@127.0.0.1:{self._port}"))

    def __enter__(self) -> Self:
        name = self._parts.path.lstrip("/")
        password = f" password={self._parts.password}" if self._parts.password else ""
        users = self._directory / "users.txt"
        users.write_text(f'"{self._parts.username}" ""\n')
        configuration = self._directory / "pgbouncer.ini"
        configuration.write_text(
            f"[databases]\n{name} = host={self._parts.hostname} port={self._parts.port}"
            f" user={self._parts.username}{password}\n"
            "[pgbouncer]\npool_mode = transaction\nauth_type = any\nlisten_addr = 127.0.0.1\n"
            f"listen_port = {self._port}\nunix_socket_dir =\nauth_file = {users}\n"
            "default_pool_size = 4\nmax_client_conn = 100\n"
            f"logfile = {self._directory / 'pgbouncer.log'}\n"
        )
        for path in (self._directory, configuration, users):
            path.chmod(0o755)
        # It refuses to run as root.
        account = ["-u", "nobody"] if _is_root() else []
        (self._directory / "pgbouncer.log").touch()
        (self._directory / "pgbouncer.log").chmod(0o666)
        self._process = subprocess.Popen(
            [self._program, "-q", *account, str(configuration)], cwd="/"
        )
        until(self._answers, what="the pooler accepts connections")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(10)

    def _answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self._port)).close()
        except OSError:
            return False
        return True


def _is_root() -> bool:
    return subprocess.check_output(["id", "-u"], text=True).strip() == "0"  # noqa: S607 - on PATH
