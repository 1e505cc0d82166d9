from datetime import timedelta

import pytest

from backwave_django import conf
from backwave_django.core.errors import ConfigurationError
from backwave_django.jobs.ids import new_id
from backwave_django.pumps.plans import driver_config, plan_node

GROUPS = {
    "web": {"QUEUES": ["critical", "default"], "POOL_SIZE": 5, "PUMPS": 2},
    "bulk": {"QUEUES": {"imports": 6, "reports": 1}, "POOL_SIZE": 3},
}


@pytest.fixture
def config():
    found, problems = conf.read({"GROUPS": GROUPS}, databases=("default",))
    assert not problems
    return found


def test_a_node_runs_the_groups_in_the_order_given(config):
    plan = plan_node(config, groups=["bulk", "web"])
    assert [group.name for group in plan.groups] == ["bulk", "web"]
    assert plan.slots == 13


def test_queues_narrow_the_groups_and_drop_those_without_any(config):
    plan = plan_node(config, groups=["web", "bulk"], queues=["reports"])
    (group,) = plan.groups
    assert (group.name, group.queues, group.weights) == ("bulk", ("reports",), {"reports": 1})


@pytest.mark.parametrize(
    ("groups", "queues", "said"),
    [
        (["nowhere"], None, 'BACKWAVE["GROUPS"] has: bulk, web.'),
        (["web", "web"], None, "--group web is given twice."),
        (["web"], ["imports"], "Served by web: critical, default."),
        (["web"], [], "--queues names nothing"),
    ],
)
def test_what_is_not_there_is_named_with_what_is(config, groups, queues, said):
    with pytest.raises(ConfigurationError) as caught:
        plan_node(config, groups=groups, queues=queues)
    assert said in str(caught.value)


def test_a_driver_gets_the_dials_of_its_group(config):
    plan = plan_node(config, groups=["bulk"])
    pump_id = new_id()
    dials = driver_config(plan.groups[0], pump_id=pump_id, stop=plan.stop)
    assert (dials.pump_id, dials.pool_size) == (pump_id, 3)
    assert dials.weights == {"imports": 6, "reports": 1}
    assert dials.heartbeat_interval == timedelta(seconds=20)
