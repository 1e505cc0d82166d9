"""Wrong clocks, by libfaketime."""

from pathlib import Path

#: Where distributions put it: the one for programs with threads, if there are two.
_LIBRARIES = ("lib*/**/faketime/libfaketimeMT.so.1", "lib*/**/faketime/libfaketime.so.1")


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
    found = [path for pattern in _LIBRARIES for path in Path("/usr").glob(pattern)]
    assert found, "the program faketime comes with a library"
    return str(found[0])
