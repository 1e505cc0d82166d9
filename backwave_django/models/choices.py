"""Labels that people read for the words that tables hold.

Plain strings, not enum members: Django writes what it is given into migrations, and a migration
must not depend on names of ours.
"""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

STATE_CHOICES = [
    ("scheduled", _("scheduled")),
    ("awaiting", _("awaiting")),
    ("leased", _("leased")),
    ("succeeded", _("succeeded")),
    ("dead_lettered", _("dead-lettered")),
    ("quarantined", _("quarantined")),
    ("expired", _("expired")),
    ("cancelled", _("cancelled")),
]
STATES = [value for value, _label in STATE_CHOICES]
TERMINAL_STATES = ["succeeded", "dead_lettered", "quarantined", "expired", "cancelled"]
