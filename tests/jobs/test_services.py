import threading

import pytest
import svcs

from backwave_django.core.errors import ConfigurationError
from backwave_django.jobs import services

calls: list[int] = []


class Gateway:
    """A service."""


def register(registry: svcs.Registry) -> None:
    calls.append(1)
    registry.register_factory(Gateway, Gateway)


def refuse(registry: svcs.Registry) -> None:
    raise RuntimeError("no gateway today")


@pytest.fixture
def services_are(settings):
    calls.clear()

    def choose(path):
        settings.BACKWAVE = {**settings.BACKWAVE, "SERVICES": path}

    return choose


def test_the_registry_is_built_once_whoever_asks(services_are):
    services_are(f"{__name__}.register")
    found: list[svcs.Registry] = []
    threads = [
        threading.Thread(target=lambda: found.append(services.registry()), daemon=True)
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(found) == 4
    assert len({id(each) for each in found}) == 1
    assert calls == [1]


def test_containers_are_apart(services_are):
    services_are(f"{__name__}.register")
    first, second = services.new_container(), services.new_container()
    assert first.get(Gateway) is first.get(Gateway)
    assert first.get(Gateway) is not second.get(Gateway)


def test_without_the_setting_there_are_no_services(services_are):
    services_are(None)
    assert list(services.registry()) == []


@pytest.mark.parametrize("path", ["nosuchmodule.register", f"{__name__}.nosuch", "register"])
def test_a_path_that_leads_nowhere_is_explained(services_are, path):
    services_are(path)
    with pytest.raises(ConfigurationError, match=r'BACKWAVE\["SERVICES"\].*svcs registry'):
        services.registry()


def test_what_the_function_raises_passes_through(services_are):
    services_are(f"{__name__}.refuse")
    for _ in range(2):
        with pytest.raises(RuntimeError, match="no gateway today"):
            services.registry()
