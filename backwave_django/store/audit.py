"""The audit of operator actions: one row each, in the transaction that carried it out."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from backwave_django.core.contract import ActionResult
from backwave_django.models import OperatorAction
from backwave_django.store.names import Statement

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from backwave_django.core.contract import Actor
    from backwave_django.store.room import Room

View = "Mapping[str, object]"

_WRITE: Final = Statement(
    """
INSERT INTO {action} (at, actor_name, actor_id, source, action, target_kind, target, reason,
  before, after, result)
VALUES (%(at)s, %(actor_name)s, %(actor_id)s, %(source)s, %(action)s, %(target_kind)s,
  %(target)s, %(reason)s, {json:before}, {json:after}, %(result)s)
"""
)


@dataclass(slots=True)
class Audit:
    """Collects what an operator did, and writes it at once."""

    room: Room
    actor: Actor
    now: datetime
    _rows: list[dict[str, Any]] = field(default_factory=list)

    def note(
        self,
        action: str,
        target: tuple[str, str],
        before: Mapping[str, object],
        after: Mapping[str, object],
        result: ActionResult = ActionResult.DONE,
    ) -> None:
        """Add one action on a target: its kind and its name."""
        self._rows.append(
            {
                "at": self.now,
                "actor_name": self.actor.name,
                "actor_id": _user_key(self.actor.user_id),
                "source": self.actor.source,
                "action": action,
                "target_kind": target[0],
                "target": target[1],
                "reason": self.actor.reason,
                "before": json.dumps(before),
                "after": json.dumps(after),
                "result": result.value,
            }
        )

    def write(self) -> None:
        """Write all rows; to be called in the transaction of the actions."""
        self.room.executor.execute_many(_WRITE, self._rows)
        self._rows = []


def _user_key(user_id: str | None) -> object:
    """The key of a user in the type of the project's user model."""
    if user_id is None:
        return None
    field_ = OperatorAction._meta.get_field("actor")  # noqa: SLF001 - the documented way to a field
    return field_.target_field.to_python(user_id)
