"""How PostgreSQL stores the busy tables. Other databases have nothing to set."""

from django.db import migrations

# Room in each page for the next version of a row, so that most updates touch no index; and a
# vacuum after a few thousand changes, whatever the size of the table: the default share of a
# large table is never reached between two bursts.
PARAMETERS = {
    "Job": {"fillfactor": 85},
    "Lease": {"fillfactor": 50},
    "Outcome": {},
}
VACUUM = {
    "autovacuum_vacuum_scale_factor": 0.02,
    "autovacuum_vacuum_threshold": 2000,
    "autovacuum_analyze_scale_factor": 0.02,
    "autovacuum_analyze_threshold": 2000,
}


def set_parameters(apps, schema_editor):
    _alter(apps, schema_editor, "SET", lambda name, value: f"{name} = {value}")


def reset_parameters(apps, schema_editor):
    _alter(apps, schema_editor, "RESET", lambda name, value: name)


def _alter(apps, schema_editor, verb, written):
    if schema_editor.connection.vendor != "postgresql":
        return
    for model, own in PARAMETERS.items():
        table = schema_editor.quote_name(apps.get_model("backwave", model)._meta.db_table)
        listed = ", ".join(written(name, value) for name, value in {**own, **VACUUM}.items())
        schema_editor.execute(f"ALTER TABLE {table} {verb} ({listed})")


class Migration(migrations.Migration):
    dependencies = [("backwave", "0001_initial")]

    operations = [migrations.RunPython(set_parameters, reset_parameters)]
