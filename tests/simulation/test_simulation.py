from dataclasses import replace
from pathlib import Path

import pytest

from tests.simulation import plans
from tests.simulation.__main__ import main
from tests.simulation.mutations import DRIVER, mutated
from tests.simulation.scenarios import draw
from tests.simulation.shrinking import shrink
from tests.simulation.swarm import search
from tests.simulation.world import run

PLANS = sorted((Path(__file__).parent / "plans").glob("*.json"))
BLOCK = 20
FORGETFUL = DRIVER[0]


@pytest.mark.parametrize("first", range(0, 8 * BLOCK, BLOCK))
def test_every_invariant_holds(first):
    broken = []
    search(
        range(first, first + BLOCK),
        failed=lambda one: broken.append(f"seed {one.plan.seed}: {one.broke} {one.detail}"),
    )
    assert broken == []


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_plans_that_once_failed_hold(path):
    report = run(plans.read(path))
    assert (report.broke, report.detail) == ("", "")


def test_a_plan_is_the_same_run_every_time():
    plan = draw(11, level="healing")
    assert run(plan) == run(plan)


def test_a_plan_file_is_the_same_plan():
    plan = draw(11, level="healing")
    assert plans.load(plan.dump()) == plan


def test_a_plan_without_its_faults_is_the_same_scenario():
    plan = draw(11, level="healing")
    assert plan.faults
    assert replace(plan, faults=[]).jobs == plan.jobs
    assert run(replace(plan, faults=[])).broke == ""


@pytest.mark.parametrize("level", ["none", "healing", "permanent"])
def test_every_level_can_be_asked_for(level):
    assert draw(5, level=level).level == level


def test_faults_of_a_calm_run_are_none():
    assert draw(5, level="none").faults == []


def test_shrinking_keeps_what_breaks(tmp_path):
    with mutated(FORGETFUL):
        plan = next(p for p in map(draw, range(50)) if p.faults and run(p).broke)
        smaller = shrink(plan)
        assert smaller.broke == run(plan).broke == run(smaller).broke
    assert len(smaller.faults) <= len(plan.faults)
    assert run(smaller).broke == ""


def test_shrinking_a_plan_that_holds_changes_nothing():
    plan = draw(0)
    assert shrink(plan) == plan


def test_the_commands_replay_and_shrink_a_plan_file(tmp_path, capsys):
    path = tmp_path / "plan.json"
    path.write_text(draw(0).dump())
    assert main(["replay", str(path)]) == 0
    with mutated(FORGETFUL):
        assert main(["replay", str(path)]) == 1
        assert main(["shrink", str(path)]) == 1
        assert main(["replay", str(path)]) == 1
    assert main(["shrink", str(path)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "every invariant held"
    assert said[1].startswith("outcome-never-lost: at ")


def test_a_swarm_goes_on_after_a_failure_and_keeps_its_plan(tmp_path, capsys):
    with mutated(FORGETFUL):
        assert main(["swarm", "--seeds", "3", "--found", str(tmp_path)]) == 1
    assert "3 seeds" in capsys.readouterr().out
    (path, *_) = tmp_path.glob("*.json")
    assert plans.read(path).broke == "outcome-never-lost"


def test_coverage_names_what_was_and_was_not_reached(capsys):
    assert main(["coverage", "--seeds", "2"]) == 0
    said = capsys.readouterr().out
    assert "scheduled -> leased        by Claim" in said
    assert "Never reached: " in said
