"""What is told about schedules, to people and by their own rows."""

from datetime import timedelta

import pytest
from django.core.exceptions import ValidationError

from backwave_django import monitor
from backwave_django.models import Schedule
from tests.factories import T0, ScheduleFactory

HOUR = timedelta(hours=1)


def codes(clock):
    return [(alert.code, alert.text) for alert in monitor.alerts(clock=clock)]


@pytest.mark.django_db
def test_alerts_tell_of_schedules_that_do_not_run():
    planned = {"cursor": T0, "next_at": T0 + HOUR}
    ScheduleFactory.create(name="fine", **planned)
    ScheduleFactory.create(name="off", enabled=False, problem="x", **planned)
    ScheduleFactory.create(name="old", retired_at=T0, **planned)
    assert codes(T0) == []
    ScheduleFactory.create(name="bad", cron="61 * * * *")
    ((code, text),) = codes(T0)
    assert code == "schedule"
    assert "The schedule bad is in error" in text
    assert [code for code, _ in codes(T0 + 2 * HOUR)] == ["schedule", "overdue"]


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"cron": "0 0 31 2 *"}, "cron"),
        ({"cron": ""}, "cron"),
        ({"cron": "@reboot"}, "cron"),
        ({"cron": "*/0 * * * *"}, "cron"),
        ({"cron": None}, "cron"),
        ({"cron": None, "every_seconds": 0.5}, "every_seconds"),
        ({"timezone": "Mars/Olympus"}, "timezone"),
    ],
)
def test_f077_a_row_refuses_a_rule_that_cannot_work_by_the_name_of_its_field(values, field):
    row = Schedule(**{"name": "s", "cron": "0 2 * * *", **values})
    with pytest.raises(ValidationError) as refusal:
        row.clean()
    assert list(refusal.value.message_dict) == [field]


def test_a_row_whose_rule_works_is_clean():
    Schedule(name="s", cron="0 2 * * *", timezone="Europe/Berlin").clean()
    Schedule(name="s", every_seconds=900.0).clean()
