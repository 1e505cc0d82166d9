import json
from io import StringIO

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from backwave_django.jobs import manifest
from backwave_django.jobs.registry import registry


@pytest.fixture
def path(tmp_path):
    return tmp_path / "jobs.json"


def run(path, *options):
    """Return what the command printed and its exit code."""
    out = StringIO()
    try:
        call_command("backwave_manifest", f"--file={path}", *options, stdout=out, no_color=True)
    except SystemExit as end:
        return out.getvalue(), end.code
    return out.getvalue(), 0


def edit(path, change):
    """Change the committed manifest, as if the code had been another one."""
    found = json.loads(path.read_text())
    change(found)
    path.write_text(manifest.render(found))


def test_it_writes_every_wire_name_and_then_finds_no_difference(path):
    out, code = run(path)
    assert code == 0
    assert "job types" in out
    assert set(json.loads(path.read_text())) == {each.wire_name for each in registry.all()}
    out, code = run(path, "--check")
    assert (out, code) == (f"{path} is as the code declares.\n", 0)


def test_a_check_without_a_file_says_how_to_make_one(path):
    with pytest.raises(CommandError, match="write it with `backwave_manifest`"):
        run(path, "--check")


def test_a_name_that_vanished_fails_the_check_and_is_not_written(path):
    run(path)

    def add(found):
        found["orders.gone"] = {"queue": "default", "version": 1, "aliases": [], "parameters": []}

    edit(path, add)
    before = path.read_text()
    out, code = run(path, "--check")
    assert code == 1
    assert "!! orders.gone: it is gone: jobs that wait under it need it as an alias" in out
    assert "1 changes leave waiting jobs behind" in out
    out, code = run(path)
    assert code == 1
    assert "was not written" in out
    assert path.read_text() == before
    assert run(path, "--accept")[1] == 0
    assert run(path, "--check")[1] == 0


def test_a_harmless_change_fails_the_check_and_is_written(path):
    run(path)
    name = registry.all()[0].wire_name
    edit(path, lambda found: found.pop(name))
    out, code = run(path, "--check")
    assert code == 1
    assert f"   {name}: it is new" in out
    assert "it is out of date" in out
    assert run(path)[1] == 0
    assert run(path, "--check")[1] == 0


def test_an_alias_that_vanished_fails_the_check(path):
    run(path)
    name = registry.all()[0].wire_name
    edit(path, lambda found: found[name].update(aliases=["an.other.name"]))
    out, code = run(path, "--check")
    assert code == 1
    assert f"!! {name}: its alias an.other.name is gone" in out


def test_a_file_that_is_none_is_refused(path):
    path.write_text("[]")
    with pytest.raises(CommandError, match="not an object of objects"):
        run(path)
    with pytest.raises(CommandError, match="cannot be read"):
        run(path.parent)
