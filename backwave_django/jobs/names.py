"""What wire names, queue names and keys may look like."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from django.apps import apps

from backwave_django.core.bounds import MAX_QUEUE_CHARS, MAX_WIRE_NAME_CHARS
from backwave_django.core.errors import InvalidDeclaration, InvalidOption

if TYPE_CHECKING:
    from collections.abc import Callable

_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]*", re.ASCII)
_LETTERS: Final = "letters, digits, '_', '.', ':' and '-', with a letter, digit or '_' first"
# NUL, which PostgreSQL refuses, and lone surrogates, which are no text in any encoding.
_UNSTORABLE: Final = re.compile("[\0\ud800-\udfff]")


def is_storable(text: str) -> bool:
    """Tell whether every database can keep ``text``."""
    return _UNSTORABLE.search(text) is None


def check_wire_name(name: object) -> str:
    """Return ``name`` if it can be a wire name; else raise ``InvalidOption``."""
    return _checked("wire name", name, cap=MAX_WIRE_NAME_CHARS, example="orders.send_receipt")


def check_queue(name: object) -> str:
    """Return ``name`` if it can be a queue's; else raise ``InvalidOption``."""
    return _checked("queue", name, cap=MAX_QUEUE_CHARS, example="default")


def check_key(option: str, key: object, *, cap: int) -> str:
    """Return ``key`` if it can be a unique key or limit key; else raise ``InvalidOption``."""
    if not isinstance(key, str) or not 1 <= len(key) <= cap:
        raise InvalidOption(option, key, f"write a text of 1 to {cap} characters as key")
    if not is_storable(key):
        raise InvalidOption(option, key, "leave NUL and lone surrogates out of the key")
    return str(key)


def _checked(what: str, name: object, *, cap: int, example: str) -> str:
    if isinstance(name, str) and len(name) <= cap and _NAME.fullmatch(name):
        return str(name)
    raise InvalidOption(what, name, f"write at most {cap} of {_LETTERS}, such as {example!r}")


def derived_wire_name(body: Callable[..., Any]) -> str:
    """Return "app_label.name" for a body that was declared without a name.

    The app is the installed one that holds the body's module. Raises ``InvalidDeclaration`` when
    there is none, and ``AppRegistryNotReady`` while Django cannot tell.
    """
    name = body.__name__
    if "." in body.__qualname__ or not name.isidentifier():
        raise InvalidDeclaration(
            f"{body.__module__}.{body.__qualname__} is not at the top of its module: "
            f'give it a wire name, @backwave.job("app.{name.strip("<>")}")'
        )
    app = apps.get_containing_app_config(body.__module__)
    if app is None:
        raise InvalidDeclaration(
            f"{body.__module__}.{name} is in no installed app: "
            f'give it a wire name, @backwave.job("app.{name}"), or add its app to INSTALLED_APPS'
        )
    return check_wire_name(f"{app.label}.{name}")
