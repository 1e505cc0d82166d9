"""Where runs leave their files, and which of them stay."""

import shutil
import tempfile
from pathlib import Path
from typing import Any


def directory_for(vendor: str) -> Path:
    """Make a directory of a run's own."""
    return Path(tempfile.mkdtemp(prefix=f"torture-{vendor}-"))


def keep(database: Any, directory: Path) -> None:
    """Save what would go with the server."""
    (directory / "server.log").write_text(database.log())


def remove(directory: Path) -> None:
    """Forget a run in which nothing broke."""
    shutil.rmtree(directory, ignore_errors=True)
