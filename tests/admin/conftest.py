"""People with exactly the rights that a test gives them, and what every page must hold to."""

from collections.abc import Callable
from html.parser import HTMLParser

import pytest
from django.contrib.auth.models import Permission, User
from django.http import HttpResponse
from django.test import Client

VIEW = ("view_job", "view_queue", "view_pump", "view_operatoraction")


class Page(HTMLParser):
    """What a strict content security policy would refuse, and what a reader could not follow."""

    def __init__(self) -> None:
        super().__init__()
        self.refused: list[str] = []
        self.tables = self.captions = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = dict(attrs)
        inline = tag == "style" or (tag == "script" and "src" not in names)
        handlers = [name for name in names if name == "style" or name.startswith("on")]
        if inline or handlers:
            self.refused.append(f"<{tag}> {handlers}")
        self.tables += tag == "table"
        self.captions += tag == "caption"
        if tag == "th" and "scope" not in names:
            self.refused.append("<th> without scope")


def text_of(response: HttpResponse) -> str:
    """Return the page, once it is sure that it holds to the rules of every page."""
    assert response.status_code == 200, response
    text = response.content.decode()
    page = Page()
    page.feed(text)
    assert page.refused == []
    assert page.tables == page.captions
    return text


@pytest.fixture
def person(client: Client) -> Callable[..., Client]:
    """Log in somebody with these rights and no others; without any, somebody who may look."""

    def log_in(*rights: str) -> Client:
        names = rights or VIEW
        user = User.objects.create_user(f"person-{User.objects.count()}", is_staff=True)
        found = Permission.objects.filter(content_type__app_label="backwave", codename__in=names)
        assert {each.codename for each in found} == set(names)
        user.user_permissions.set(found)
        client.force_login(user)
        return client

    return log_in
