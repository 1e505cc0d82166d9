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
    for table, parameters in _tables(apps, schema_editor):
        listed = ", ".join(f"{name} = {value}" for name, value in parameters.items())
        schema_editor.execute(f"ALTER TABLE {table} SET ({listed})")


def reset_parameters(apps, schema_editor):
    for table, parameters in _tables(apps, schema_editor):
        schema_editor.execute(f"ALTER TABLE {table} RESET ({', '.join(parameters)})")


def _tables(apps, schema_editor):
    if schema_editor.connection.vendor != "postgresql":
        return
    for model, own in PARAMETERS.items():
        name = apps.get_model("backwave", model)._meta.db_table  # noqa: SLF001 - documented
        yield schema_editor.quote_name(name), {**own, **VACUUM}


class Migration(migrations.Migration):
    dependencies = [("backwave", "0001_initial")]

    operations = [migrations.RunPython(set_parameters, reset_parameters)]
