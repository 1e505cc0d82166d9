"""What ``import backwave_django`` gives, and what it must not do."""

import json
import subprocess
import sys
from inspect import isroutine

import pytest

import backwave_django as backwave

PUBLIC = {
    # declaring
    *("job", "context", "service", "Limit", "Retry", "schedule", "add_schedule", "Signature"),
    # enqueueing, and what is made of it
    *("enqueue", "aenqueue", "BoundOptions", "JobHandle", "JobState", "JobType", "Cause"),
    *("ActionAnswer", "ActionResult", "Actor", "JobRecord", "Reason"),
    # workflows
    *("workflow", "Workflow", "WorkflowHandle", "WorkflowStatus", "WorkflowAnswer", "RetryScope"),
    *("chain", "parallel", "Graph"),
    # reactions
    *("on_outcome", "OutcomeEvent"),
    # inside of a body
    *("JobContext", "current", "Cancelled", "GiveUp", "RetryAfter", "Snooze", "JobTimedOut"),
    # what can go wrong
    *("BackwaveError", "ConfigurationError", "DuplicateWireName", "InsideTransaction"),
    *("InvalidDeclaration", "InvalidOption", "JobGone", "PayloadTooLarge", "StoreError"),
    *("StoreUnavailable", "UnknownJobType", "UnknownParent", "UnserializableValue"),
    *("UsageError", "WaitTimeout", "WrongArguments"),
    *("NotAnAncestor", "WorkflowClosed", "WorkflowGone"),
}


def in_a_fresh_process(code: str) -> object:
    answer = subprocess.run(
        [sys.executable, "-c", f"import json\n{code}\nprint(json.dumps(answer))"],
        check=True,
        capture_output=True,
        text=True,
        env={"PATH": ""},
    )
    return json.loads(answer.stdout)


def test_the_public_names_are_these():
    assert set(backwave.__all__) == PUBLIC
    assert list(backwave.__all__) == sorted(backwave.__all__)


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_public_names_carry_docstrings(name):
    documented = getattr(backwave, name)
    assert documented.__doc__
    if isinstance(documented, type) and documented.__module__.startswith("backwave_django.jobs"):
        undocumented = [
            member
            for member, value in vars(documented).items()
            if not member.startswith("_")
            and (isroutine(value) or isinstance(value, property))
            and not value.__doc__
        ]
        assert undocumented == []


def test_importing_the_package_needs_no_settings_and_imports_no_models():
    loaded = in_a_fresh_process(
        "import sys, backwave_django\n"
        "answer = sorted(name for name in sys.modules if name.startswith('backwave_django'))"
    )
    assert isinstance(loaded, list)
    rooms = {name.split(".")[1] for name in loaded if "." in name}
    assert rooms == {"conf", "core", "jobs"}


def test_a_project_without_services_does_not_pay_for_them():
    loaded = in_a_fresh_process(
        "import sys, django\n"
        "from django.conf import settings\n"
        "settings.configure(\n"
        "    INSTALLED_APPS=['django.contrib.auth', 'django.contrib.contenttypes',"
        " 'backwave_django'],\n"
        "    DATABASES={'default': {'ENGINE': 'django.db.backends.sqlite3', 'NAME': ':memory:'}},\n"
        ")\n"
        "django.setup()\n"
        "import backwave_django.pumps.nodes\n"
        "answer = 'svcs' in sys.modules"
    )
    assert loaded is False


def test_declaring_and_calling_need_no_settings():
    answer = in_a_fresh_process(
        "import backwave_django as backwave\n"
        "@backwave.job\n"
        "def double(number: int) -> int:\n"
        "    return number * 2\n"
        "answer = double(21)"
    )
    assert answer == 42


def test_enqueueing_before_django_is_ready_says_what_is_missing():
    problem = in_a_fresh_process(
        "import backwave_django as backwave\n"
        "@backwave.job('x.double')\n"
        "def double(number: int) -> int:\n"
        "    return number * 2\n"
        "try:\n"
        "    double.enqueue(21)\n"
        "except Exception as error:\n"
        "    answer = f'{type(error).__name__}: {error}'"
    )
    assert "AppRegistryNotReady" in str(problem)
    assert "django.setup()" in str(problem)
