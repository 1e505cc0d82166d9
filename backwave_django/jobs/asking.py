"""Who asks for something in code: a name and a reason for the audit trail."""

from __future__ import annotations

from backwave_django.core.bounds import MAX_ACTOR_CHARS
from backwave_django.core.contract import Actor
from backwave_django.core.errors import InvalidOption
from backwave_django.jobs.names import is_storable


def asking(actor: object, reason: object) -> Actor:
    """Return the actor of a call. Raises ``InvalidOption`` before anything is asked."""
    if not (isinstance(actor, str) and 1 <= len(actor) <= MAX_ACTOR_CHARS and is_storable(actor)):
        raise InvalidOption("actor", actor, f"write a name of 1 to {MAX_ACTOR_CHARS} characters")
    if not (isinstance(reason, str) and is_storable(reason)):
        raise InvalidOption("reason", reason, "write a text without NUL and lone surrogates")
    return Actor(name=actor, source="code", reason=reason)
