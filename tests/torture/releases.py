"""Pumps of the last release beside those of this tree, on one database."""

import os
import subprocess
import tarfile
from collections.abc import Callable
from functools import partial
from io import BytesIO
from pathlib import Path

from tests.torture.children import exec_runpumps

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGE = "backwave_django"


def last_tag(root: Path = ROOT) -> str | None:
    """The newest tag that this tree descends from; none in a tree without tags, or without git."""
    try:
        found = _git(root, "describe", "--tags", "--abbrev=0")
    except (OSError, subprocess.CalledProcessError):
        return None
    return found.decode().strip()


def unpacked(revision: str, *, directory: Path, root: Path = ROOT) -> Path:
    """Put the package as it was at ``revision`` into a directory; return the path to import it."""
    target = directory / "release"
    with tarfile.open(fileobj=BytesIO(_git(root, "archive", revision, PACKAGE))) as archive:
        archive.extractall(target, filter="data")
    return target


def pumps_of(release: Path) -> Callable[[str], int]:
    """What runs pumps of an unpacked release. Jobs and settings are those of this tree."""
    return partial(exec_runpumps, path=(release, ROOT), environ=dict(os.environ))


def _git(root: Path, *arguments: str) -> bytes:
    command = ["git", "-C", str(root), *arguments]
    return subprocess.run(command, check=True, capture_output=True).stdout
