"""The shop's manage.py: ``python testproject/manage.py COMMAND``, from any directory."""

import os
import sys
from pathlib import Path

from django.core.management import execute_from_command_line


def main() -> None:
    """Run one management command with the shop's settings."""
    here = Path(__file__).resolve().parent
    # Python put this directory first; modules in it must not shadow top-level ones.
    sys.path[:] = [
        str(here.parent),
        *(entry for entry in sys.path if Path(entry).resolve() != here),
    ]
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "testproject.settings")
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
