"""``shop_user``: somebody who may log in to the admin."""

from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandParser


class Command(BaseCommand):
    """Create a superuser, or give an existing one a new password."""

    help = "Create a superuser of the shop's admin, or set the password of an existing one."

    def add_arguments(self, parser: CommandParser) -> None:
        """Who, and with which password."""
        parser.add_argument("username")
        parser.add_argument("password")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Create or update; silent."""
        users = get_user_model()._default_manager  # noqa: SLF001 - the name Django documents
        user, _ = users.get_or_create(username=options["username"])
        user.is_staff = user.is_superuser = True
        user.set_password(options["password"])
        user.save()
