"""Where bodies of the tests leave their marks, and wait for a word. Fresh for each test."""

import threading
from typing import Any

SEEN: list[Any] = []
BEGUN = threading.Event()
GO = threading.Event()
