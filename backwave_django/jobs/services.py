"""The service registry of this process, and the container of one attempt.

svcs is imported when services are first used: what it brings along takes 3 MB, and many projects
have none.
"""

from __future__ import annotations

import atexit
import threading
from typing import TYPE_CHECKING, Any, Final

from django.core.signals import setting_changed
from django.utils.module_loading import import_string

from backwave_django.conf import get_config
from backwave_django.core.errors import ConfigurationError

if TYPE_CHECKING:
    import svcs


class _Shelf:
    """Builds the registry when it is first needed, once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._registry: svcs.Registry | None = None

    def registry(self) -> svcs.Registry:
        # Factories and values may be expensive to register twice: the others wait.
        if self._registry is None:
            with self._lock:
                if self._registry is None:
                    self._registry = _build()
        return self._registry

    def close(self) -> None:
        with self._lock:
            registry, self._registry = self._registry, None
        if registry is not None:
            registry.close()


def _build() -> svcs.Registry:
    import svcs  # noqa: PLC0415 - see above

    registry = svcs.Registry()
    path = get_config().services
    if path is not None:
        _registrar(path)(registry)
    return registry


def _registrar(path: str) -> Any:
    try:
        return import_string(path)
    except ImportError as error:
        raise ConfigurationError(
            f'BACKWAVE["SERVICES"] = {path!r} cannot be imported: {error}.',
            "Write the dotted path of a function that takes an svcs registry.",
        ) from error


_shelf: Final = _Shelf()
atexit.register(_shelf.close)


def registry() -> svcs.Registry:
    """Return the registry that ``BACKWAVE["SERVICES"]`` filled. It lives as long as the process.

    Raises ``ConfigurationError`` when the function cannot be imported; what the function itself
    raises passes through, and the next call tries again.
    """
    return _shelf.registry()


def new_container() -> svcs.Container:
    """Return an empty container over the registry. Who opens one closes it."""
    import svcs  # noqa: PLC0415 - see above

    return svcs.Container(registry())


def _forget(*, setting: str, **_: object) -> None:
    if setting == "BACKWAVE":
        _shelf.close()


setting_changed.connect(_forget)
