from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    """Unique indexes that list only the jobs that have such a key; the wider ones go after."""

    dependencies = [("backwave", "0004_workflows")]

    operations = [
        migrations.AddConstraint(
            model_name="job",
            constraint=models.UniqueConstraint(
                name="backwave_job_live_key",
                fields=["unique_live"],
                condition=Q(unique_live__isnull=False),
            ),
        ),
        migrations.AddConstraint(
            model_name="job",
            constraint=models.UniqueConstraint(
                name="backwave_job_one_tick",
                fields=["schedule", "scheduled_for"],
                condition=Q(schedule__isnull=False),
            ),
        ),
        migrations.RemoveConstraint(model_name="job", name="backwave_job_tick"),
        migrations.AlterField(
            model_name="job",
            name="unique_live",
            field=models.CharField(max_length=255, null=True),
        ),
    ]
