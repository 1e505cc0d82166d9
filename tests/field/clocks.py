"""Wrong clocks, by libfaketime."""

from pathlib import Path

import pytest

_LIBRARIES = ("libfaketimeMT.so.1", "libfaketime.so.1")
_DIRECTORIES = ("/usr/lib/x86_64-linux-gnu/faketime", "/usr/lib/aarch64-linux-gnu/faketime")


class WrongClock:
    """The wall clock of some processes, off by what ``set`` said last.

    Their other clocks are right: what a thread waits for comes in time.
    """

    def __init__(self, directory: Path) -> None:
        self._file = directory / "clock"
        self._library = _library()
        self.set("+0")

    @property
    def environ(self) -> dict[str, str]:
        """What processes have to be started with."""
        return {
            "LD_PRELOAD": self._library,
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }

    def set(self, offset: str) -> None:
        """Set the clock: ``+10m`` is ten minutes fast, ``-10m`` ten minutes slow."""
        self._file.write_text(f"{offset}\n")


def _library() -> str:
    for directory in _DIRECTORIES:
        for name in _LIBRARIES:
            if Path(directory, name).exists():
                return str(Path(directory, name))
    pytest.skip("needs the library libfaketime, which is not installed")
