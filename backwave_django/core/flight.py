"""Store commands that were issued and not yet answered."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from backwave_django.core.commands import Claim

if TYPE_CHECKING:
    from collections.abc import Sequence

    from backwave_django.core.commands import Command, StoreCommand

_C = TypeVar("_C", bound="StoreCommand")


class Flight:
    """The one round trip in flight, and the slots that its claims may fill."""

    def __init__(self) -> None:
        self._commands: list[StoreCommand] = []
        self.reserved = 0

    def __bool__(self) -> bool:
        return bool(self._commands)

    def issue(self, commands: Sequence[StoreCommand]) -> tuple[StoreCommand, ...]:
        """Remember ``commands`` until each is answered; return them."""
        self._commands += commands
        self.reserved += sum(one.request.limit for one in commands if isinstance(one, Claim))
        return tuple(commands)

    def holds(self, kind: type[StoreCommand]) -> bool:
        """Tell whether a command of this kind is in flight."""
        return any(isinstance(command, kind) for command in self._commands)

    def answered(self, *kinds: type[_C]) -> _C:
        """Take the oldest command of these kinds out of flight."""
        for command in self._commands:
            if isinstance(command, kinds):
                self._land(command)
                return command
        raise AssertionError(f"an answer to {kinds}, none of which is in flight")

    def faulted(self, command: Command) -> None:
        """Take out a command that will not be answered."""
        assert command in self._commands, "a fault of a command that is not in flight"
        self._land(command)

    def _land(self, command: StoreCommand) -> None:
        self._commands.remove(command)
        if isinstance(command, Claim):
            self.reserved -= command.request.limit
