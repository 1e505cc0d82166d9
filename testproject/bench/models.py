"""The row that the ``orm`` body reads and updates."""

from django.db import models


class Row(models.Model):
    """A counter."""

    n = models.IntegerField(default=0)

    def __str__(self) -> str:
        return f"row {self.pk}: {self.n}"
