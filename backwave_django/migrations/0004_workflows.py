from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("backwave", "0003_schedules")]

    operations = [
        migrations.AlterModelOptions(
            name="workflow",
            options={
                "default_permissions": ("view",),
                "permissions": [
                    ("cancel_workflow", "Can cancel workflows"),
                    ("retry_workflow", "Can retry workflows in place"),
                    ("restart_workflow", "Can restart workflows"),
                ],
                "verbose_name": "workflow",
                "verbose_name_plural": "workflows",
            },
        ),
        migrations.AddField(
            model_name="workflow",
            name="size",
            field=models.IntegerField(null=True, verbose_name="jobs"),
        ),
        migrations.AddField(
            model_name="workflow",
            name="steps",
            field=models.JSONField(null=True),
        ),
    ]
