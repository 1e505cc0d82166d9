"""Tags: small facts about a job, for people and for filters."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Final, TypeAlias

from backwave_django.core.bounds import MAX_TAGS_BYTES
from backwave_django.core.errors import InvalidOption, PayloadTooLarge
from backwave_django.jobs.payload import encode

TagValue: TypeAlias = str | int | float | bool

NO_TAGS: Final = "{}"


def checked_tags(tags: object) -> dict[str, TagValue]:
    """Return ``tags`` as a dict of its own. Raises ``InvalidOption`` for what tags cannot be."""
    if not isinstance(tags, Mapping):
        raise InvalidOption("tags", tags, 'write a dict of names and values, {"tenant": "acme"}')
    for name, value in tags.items():
        if type(name) is not str or not name:
            raise InvalidOption("tags", name, "name a tag by a non-empty str")
        if type(value) not in (str, int, float, bool):
            raise InvalidOption(
                f"tags[{name!r}]", value, "write a str, a number, True or False as a tag"
            )
        if type(value) is float and not math.isfinite(value):
            raise InvalidOption(f"tags[{name!r}]", value, "write a finite number")
    return dict(tags)


def encode_tags(tags: Mapping[str, TagValue]) -> str:
    """Return checked tags as JSON text.

    Raises ``UnserializableValue`` for text that no database stores, ``PayloadTooLarge`` for
    tags over ``MAX_TAGS_BYTES`` together.
    """
    encode(dict(tags), where="tags")
    text = json.dumps(tags, ensure_ascii=False, separators=(",", ":"))
    size = len(text.encode())
    if size > MAX_TAGS_BYTES:
        raise PayloadTooLarge("tags", size, MAX_TAGS_BYTES)
    return text
