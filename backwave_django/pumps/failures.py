"""Failure detail: what is kept of an exception for the person who looks for its cause.

Whatever the exception is made of, something readable comes out: nothing in here raises.
"""

from __future__ import annotations

import traceback
from hashlib import blake2b
from pathlib import Path
from typing import Final

from backwave_django.core.bounds import (
    MAX_ERROR_CLASS_CHARS,
    MAX_MESSAGE_CHARS,
    MAX_TRACEBACK_CHARS,
)
from backwave_django.core.outcomes import Failure

#: Frames of ours say how a body came to be called, which is never why it failed.
_OWN: Final = f"{Path(__file__).resolve().parent.parent}/"
#: What a fingerprint looks at: enough to tell call paths apart, few enough to group well.
_FINGERPRINT_FRAMES: Final = 5
_LONGEST_CHAIN: Final = 20
#: Nobody reads the middle of a deep recursion, and formatting it takes a while.
_MOST_FRAMES: Final = 200


def describe(error: BaseException) -> Failure:
    """Return the detail of ``error``, cut to its bounds and clean enough for any database."""
    name = class_name(type(error))
    frames = _app_frames(error)
    return Failure(
        error_class=clean(name)[:MAX_ERROR_CLASS_CHARS],
        message=cut(clean(_text(error)), most=MAX_MESSAGE_CHARS),
        traceback=cut(clean(_traceback(error)), most=MAX_TRACEBACK_CHARS),
        fingerprint=_fingerprint(name, frames),
    )


def is_printable(error: BaseException) -> bool:
    """Tell whether what ``error`` and its causes say can be written to any UTF-8 stream."""
    current: BaseException | None = error
    for _ in range(_LONGEST_CHAIN):
        if current is None:
            break
        text = _text(current)
        if clean(text) != text:
            return False
        current = current.__cause__ or current.__context__
    return True


def class_name(kind: type[BaseException]) -> str:
    """Return where an exception's class lives, the way an ``import`` would spell it."""
    module = getattr(kind, "__module__", None)
    name = str(getattr(kind, "__qualname__", kind.__name__))
    return name if module in {None, "builtins"} else f"{module}.{name}"


def clean(text: str) -> str:
    """Return ``text`` with NUL and lone surrogates escaped: no database takes them."""
    return text.encode("utf-8", "backslashreplace").decode().replace("\x00", "\\x00")


def cut(text: str, *, most: int) -> str:
    """Return ``text`` within ``most`` characters, both of its ends kept."""
    if len(text) <= most:
        return text
    notice = f"\n... {len(text) - most:,} characters cut ...\n"
    head = (most - len(notice)) * 2 // 3
    tail = most - len(notice) - head
    return f"{text[:head]}{notice}{text[-tail:]}"


def _text(error: BaseException) -> str:
    for form in (str, repr):
        try:
            text = form(error)
        except BaseException:  # noqa: S112 - a body's own code may raise anything
            continue
        return text[: MAX_MESSAGE_CHARS * 4]
    return f"<{type(error).__name__} that cannot be shown>"


def _traceback(error: BaseException) -> str:
    try:
        report = traceback.TracebackException(
            type(error), error, error.__traceback__, limit=-_MOST_FRAMES, compact=True
        )
        _strip(report)
        return "".join(report.format())
    except BaseException:  # deep groups, no memory, hostile attributes
        return f"{class_name(type(error))}: the traceback cannot be shown\n"


def _strip(report: traceback.TracebackException) -> None:
    """Take the package's own frames out, here and in all that led to it."""
    pending = [report]
    seen: set[int] = set()
    while pending:
        current = pending.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        kept = [frame for frame in current.stack if not frame.filename.startswith(_OWN)]
        if kept:
            current.stack[:] = kept
        related = (current.__cause__, current.__context__, *(current.exceptions or ()))
        pending += [each for each in related if each is not None]


def _app_frames(error: BaseException) -> list[str]:
    """Return the innermost frames as file and function, without line numbers.

    A fingerprint must outlive an edit further up in the file.
    """
    frames: list[str] = []
    step = error.__traceback__
    while step is not None:
        code = step.tb_frame.f_code
        if not code.co_filename.startswith(_OWN):
            frames.append(f"{Path(code.co_filename).name}:{code.co_name}")
        step = step.tb_next
    return frames[-_FINGERPRINT_FRAMES:]


def _fingerprint(name: str, frames: list[str]) -> str:
    text = "\n".join([name, *frames])
    return blake2b(text.encode("utf-8", "backslashreplace"), digest_size=8).hexdigest()
