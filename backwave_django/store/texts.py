"""Texts that every database keeps."""

from __future__ import annotations


def cleaned(text: str) -> str:
    """Return ``text`` without what no database keeps: NUL, and halves of surrogate pairs."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode()
