"""Settings of a project with which nothing can work."""

import os

import pytest

from tests.e2e.processes import ROOT

WITHOUT_ZONES = """
from tests.field.settings import *

USE_TZ = False
TIME_ZONE = "Asia/Shanghai"
"""


@pytest.mark.parametrize("command", ["check", "migrate", "runpumps"])
def test_f086_a_project_without_time_zones_is_told_to_have_them(field, tmp_path, command):
    (tmp_path / "without_zones.py").write_text(WITHOUT_ZONES)
    environ = {
        "DJANGO_SETTINGS_MODULE": "without_zones",
        "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}",
    }
    process = field.manage(command, environ=environ)
    process.was_told = True  # to end badly is what it should
    assert process.wait() == 1
    assert "(backwave.E030) USE_TZ is False" in process.log
    assert "Write USE_TZ = True." in process.log
    assert "TypeError" not in process.log
