from django.db import migrations, models


class Migration(migrations.Migration):
    """What the settings say of a queue's cap and rate, beside what they say of its window."""

    dependencies = [
        ("backwave", "0006_limits_over_time"),
    ]

    operations = [
        migrations.AddField(
            model_name="queue",
            name="limit_default",
            field=models.IntegerField(null=True),
        ),
        migrations.AddField(
            model_name="queue",
            name="rate_default",
            field=models.CharField(max_length=40, null=True),
        ),
        migrations.AddConstraint(
            model_name="queue",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("limit_default__isnull", True), ("limit_default__gte", 0), _connector="OR"
                ),
                name="backwave_queue_limit_default",
            ),
        ),
    ]
