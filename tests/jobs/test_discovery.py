"""Finding ``<app>/jobs.py``, in processes whose settings a test writes."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent

SETTINGS = """
SECRET_KEY = "x"
USE_TZ = True
DATABASES = {{"default": {{"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}}}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = [{apps}]
"""

JOBS = """
import backwave_django as backwave

@backwave.job
def refund(order_id: int) -> None:
    "Bare."
"""

LIST_JOBS = """
import django
django.setup()
from backwave_django.jobs.registry import registry
print(*(name for name, version in registry.known()))
"""


@pytest.fixture
def project(tmp_path):
    """Write apps and settings, run ``manage.py check`` or a script on them."""

    def make(apps, *, installed=None):
        for app, modules in apps.items():
            (tmp_path / app).mkdir()
            (tmp_path / app / "__init__.py").touch()
            for module, code in modules.items():
                (tmp_path / app / f"{module}.py").write_text(textwrap.dedent(code))
        listed = ["backwave_django", *(installed or apps)]
        (tmp_path / "chosen_settings.py").write_text(
            SETTINGS.format(apps=", ".join(map(repr, listed)))
        )
        return lambda *arguments: run(tmp_path, *arguments)

    return make


def run(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=directory,
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "chosen_settings",
            "PYTHONPATH": f"{directory}:{ROOT}",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_jobs_modules_are_found_and_apps_without_one_passed_over(project):
    python = project({"orders": {"jobs": JOBS}, "plain": {}})
    answer = python("-c", LIST_JOBS)
    assert answer.stdout.split() == ["orders.refund"], answer.stderr


def test_a_name_derived_before_the_apps_are_ready_has_the_apps_own_label(project):
    python = project(
        {
            "orders": {
                "jobs": JOBS,
                "apps": """
                    from django.apps import AppConfig
                    import orders.jobs

                    class Orders(AppConfig):
                        name = "orders"
                        label = "shop_orders"
                """,
            }
        },
        installed=["orders.apps.Orders"],
    )
    answer = python("-c", LIST_JOBS)
    assert answer.stdout.split() == ["shop_orders.refund"], answer.stderr


@pytest.mark.parametrize(
    ("modules", "trace"),
    [
        ({"jobs": "import nosuchmodule"}, "No module named 'nosuchmodule'"),
        ({"jobs": "raise RuntimeError('no jobs today')"}, "RuntimeError: no jobs today"),
        (
            {
                "jobs": "from orders.models import Order\nCOUNT = 3",
                "models": "from orders.jobs import COUNT\nclass Order: pass",
            },
            "partially initialized module",
        ),
        (
            {
                "jobs": JOBS
                + JOBS.replace("def refund", "def other").replace(
                    "@backwave.job", "@backwave.job('orders.refund')"
                )
            },
            "wire name 'orders.refund' is declared by orders.jobs.refund",
        ),
    ],
)
def test_f151_what_a_jobs_module_raises_ends_the_process_with_the_traceback(
    project, modules, trace
):
    answer = project({"orders": modules})("-m", "django", "check")
    assert answer.returncode != 0
    assert "Traceback" in answer.stderr
    assert trace in answer.stderr


def test_a_late_name_that_cannot_be_derived_ends_the_process_too(project):
    python = project(
        {
            "orders": {
                "apps": """
                    from django.apps import AppConfig
                    import outside

                    class Orders(AppConfig):
                        name = "orders"
                """,
            },
            "outside": {"__init__": JOBS},
        },
        installed=["orders.apps.Orders"],
    )
    answer = python("-m", "django", "check")
    assert answer.returncode != 0
    assert "outside.refund is in no installed app" in answer.stderr
