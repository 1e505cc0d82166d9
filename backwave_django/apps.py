"""The Django app: where the rooms are wired together."""

from __future__ import annotations

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class BackwaveConfig(AppConfig):
    """Background jobs in the database of the project."""

    name = "backwave_django"
    label = "backwave"
    verbose_name = _("Background jobs")
    default_auto_field = "django.db.models.BigAutoField"
