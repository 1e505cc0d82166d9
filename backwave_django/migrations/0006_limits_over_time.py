from django.db import migrations, models


class Migration(migrations.Migration):
    """Rates of queues and limit keys, windows of queues, and limits of keys by pattern."""

    dependencies = [
        ("backwave", "0005_fewer_index_entries"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="limit",
            options={
                "default_permissions": ("view",),
                "permissions": [("set_limit", "Can change limits of keys")],
                "verbose_name": "limit",
                "verbose_name_plural": "limits",
            },
        ),
        migrations.AddField(
            model_name="limit",
            name="rate",
            field=models.CharField(max_length=40, null=True, verbose_name="rate"),
        ),
        migrations.AddField(
            model_name="limit",
            name="rate_full_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="queue",
            name="rate",
            field=models.CharField(max_length=40, null=True, verbose_name="rate"),
        ),
        migrations.AddField(
            model_name="queue",
            name="rate_full_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="queue",
            name="window",
            field=models.CharField(max_length=500, null=True, verbose_name="window"),
        ),
        migrations.AddField(
            model_name="queue",
            name="window_default",
            field=models.CharField(max_length=500, null=True),
        ),
        migrations.AlterField(
            model_name="limit",
            name="limit",
            field=models.IntegerField(null=True, verbose_name="limit"),
        ),
        migrations.AlterField(
            model_name="limit",
            name="source",
            field=models.CharField(
                choices=[
                    ("code", "code"),
                    ("operator", "operator"),
                    ("pattern", "operator, for a pattern"),
                ],
                max_length=16,
                verbose_name="set by",
            ),
        ),
        migrations.AddIndex(
            model_name="limit",
            index=models.Index(
                condition=models.Q(("source", "pattern")),
                fields=["key"],
                name="backwave_limit_pattern",
            ),
        ),
    ]
