"""``settings.BACKWAVE``: what it means, and what is said about what cannot work."""

from datetime import timedelta

import pytest
from django.test import override_settings

from backwave_django import conf
from backwave_django.core.contract import History
from backwave_django.core.errors import ConfigurationError
from backwave_django.core.limits import Cap
from backwave_django.core.queues import QueueDefaults
from backwave_django.core.rates import Rate
from backwave_django.core.retries import Retry

SECOND = timedelta(seconds=1)


def read(values):
    return conf.read(values, databases=["default", "jobs"])


def read_group(**values):
    return read({"GROUPS": {"default": values}})


def group(**values):
    config, problems = read_group(**values)
    assert problems == ()
    return config.groups["default"]


def test_nothing_written_is_one_group_with_the_defaults():
    config, problems = read({})
    assert problems == ()
    assert list(config.groups) == ["default"]
    default = config.group("default")
    assert (default.queues, default.weights) == (("default",), None)
    assert (default.pool_size, default.pumps) == (20, 1)
    assert (default.max_claim_batch, default.max_outcome_batch) == (32, 32)
    assert (default.poll_interval, default.max_poll_interval) == (SECOND, None)
    assert (default.lease_duration, default.heartbeat_interval) == (60 * SECOND, 20 * SECOND)
    assert default.retry == Retry()
    assert (default.purge, default.connections) == (True, "fresh")
    assert (config.database, config.history, config.hints) == ("default", History.DETAIL, True)


def test_list_of_queues_is_strict_and_mapping_is_weighted():
    assert group(QUEUES=["b", "a"]).queues == ("b", "a")
    weighted = group(QUEUES={"imports": 6, "reports": 1})
    assert weighted.queues == ("imports", "reports")
    assert weighted.weights == {"imports": 6, "reports": 1}


def test_durations_are_timedeltas_or_seconds():
    assert group(LEASE_DURATION=90).lease_duration == 90 * SECOND
    assert group(LEASE_DURATION=timedelta(minutes=2)).heartbeat_interval == 40 * SECOND
    assert group(POLL_INTERVAL=0.25).poll_interval == SECOND / 4


def test_outcome_batch_follows_the_claim_batch():
    assert group(MAX_CLAIM_BATCH=7).max_outcome_batch == 7


def test_group_retry_takes_what_it_does_not_say_from_the_top():
    config, problems = read(
        {
            "RETRY": {"MAX_ATTEMPTS": 3, "JITTER": 0},
            "GROUPS": {"default": {}, "bulk": {"RETRY": {"MAX_ATTEMPTS": 9}}},
        }
    )
    assert problems == ()
    assert config.groups["default"].retry == Retry(max_attempts=3, jitter=0)
    assert config.groups["bulk"].retry == Retry(max_attempts=9, jitter=0)


def test_retry_may_be_written_as_one_value():
    config, problems = read({"RETRY": Retry(max_attempts=2)})
    assert (problems, config.retry.max_attempts) == ((), 2)


def test_retention_of_none_keeps_for_ever():
    config, problems = read({"RETENTION": {"SUCCEEDED": None, "DEAD_LETTERED": 3600}})
    assert problems == ()
    assert config.retention.succeeded is None
    assert config.retention.dead_lettered == timedelta(hours=1)
    assert config.retention.cancelled == timedelta(days=7)
    assert config.store_settings.retention is config.retention


def test_limits_and_windows_are_named_for_every_queue_and_kept_in_one_spelling():
    limits = {
        "mail": 20,
        "none": 0,
        "crawl": {"LIMIT": 5, "RATE": "10 / 1 seconds"},
        "sms": {"RATE": "100/minute"},
    }
    config, problems = read({"LIMITS": limits, "WINDOWS": {"sms": "mon 8:00-12:00 UTC"}})
    assert problems == ()
    assert config.declared_queues == {
        "default": QueueDefaults(),
        "mail": QueueDefaults(Cap(20)),
        "none": QueueDefaults(Cap(0)),
        "crawl": QueueDefaults(Cap(5, Rate(10, 1, "second"))),
        "sms": QueueDefaults(Cap(None, Rate(100, 1, "minute")), "Mon 08:00-12:00 UTC"),
    }
    assert read({})[0].declared_queues == {"default": QueueDefaults()}


def test_config_names_every_served_queue():
    config, _ = read({"GROUPS": {"a": {"QUEUES": ["x", "y"]}, "b": {"QUEUES": {"z": 1}}}})
    assert config.queues == {"x", "y", "z"}


def test_unknown_group_is_answered_with_the_groups_there_are():
    config, _ = read({"GROUPS": {"a": {}, "b": {}}})
    with pytest.raises(ConfigurationError, match=r"no group 'c'.* a, b"):
        config.group("c")


@pytest.mark.parametrize(
    ("values", "code", "words"),
    [
        ([], "E001", "BACKWAVE is []"),
        ({"GROUP": {}}, "E002", "no setting 'GROUP'"),
        ({"DATABASE": "queue"}, "E003", 'Write "default" or "jobs"'),
        ({"GROUPS": {}}, "E004", "at least one group"),
        ({"GROUPS": []}, "E004", "at least one group"),
        ({"GROUPS": {7: {}}}, "E004", "Name each group"),
        ({"GROUPS": {"": {}}}, "E004", "Name each group"),
        ({"GROUPS": {"a": []}}, "E004", '["a"] is []'),
        ({"RETRY": {"JITTER": 2}}, "E017", "In JITTER: write a share between 0 and 1"),
        ({"RETRY": {"INITIAL": 10, "MAXIMUM": 5}}, "E017", "In MAXIMUM: write at least"),
        ({"RETRY": {"MAX_ATTEMPTS": 0}}, "E017", '["MAX_ATTEMPTS"] is 0'),
        ({"RETRY": {"MULTIPLIER": "3"}}, "E017", "Write a number"),
        ({"RETRY": {"ATTEMPTS": 3}}, "E017", "no setting 'ATTEMPTS'"),
        ({"RETRY": 3}, "E017", "Write a dict"),
        ({"RETENTION": {"FAILED": 1}}, "E020", "no setting 'FAILED'"),
        ({"RETENTION": {"EXPIRED": -1}}, "E020", "or None"),
        ({"SERVICES": 3}, "E021", "dotted path"),
        ({"MIDDLEWARE": "a.b"}, "E022", "list of dotted paths"),
        ({"UNROUTABLE_GRACE": -1}, "E023", "timedelta or a number of seconds"),
        ({"HISTORY": "all"}, "E024", '"off" or "outcomes" or "detail"'),
        ({"POOLER": "session"}, "E025", '"transaction", or None'),
        ({"DIRECT_URL": ""}, "E026", "postgres://"),
        ({"HINTS": 1}, "E027", "True or False"),
        ({"EXPOSE_SENSITIVE": None}, "E028", "True or False"),
        ({"SCHEDULES": {"OWNER": ""}}, "E029", "a name of 1 to 100 characters"),
        ({"SCHEDULES": {"RELEASE": "v1"}}, "E029", "grows with each release"),
        ({"SCHEDULES": {"RELEASE": 2**63}}, "E029", "grows with each release"),
        ({"SCHEDULES": {"NAME": "x"}}, "E029", "no setting 'NAME'"),
        ({"SCHEDULES": "shop"}, "E029", "Write a dict"),
        ({"WINDOWS": "20:00-06:00 UTC"}, "E034", 'Write a dict: {"reports": "20:00'),
        ({"WINDOWS": {"": "20:00-06:00 UTC"}}, "E034", "Name each queue by 1 to 100"),
        ({"WINDOWS": {"reports": "20:00-06:00"}}, "E034", "End with a time zone"),
        ({"WINDOWS": {"reports": "20-06 UTC"}}, "E034", "'20-06' is no window: write"),
        ({"WINDOWS": {"reports": None}}, "E034", 'Write "20:00-06:00 Europe/Zurich"'),
        ({"LIMITS": 20}, "E037", 'Write a dict: {"mail": 20, "crawl": {"LIMIT": 5'),
        ({"LIMITS": {"q" * 101: 20}}, "E037", "Name each queue by 1 to 100"),
        ({"LIMITS": {7: 20}}, "E037", "a dict with the queue 7. Name each queue"),
        ({"LIMITS": {"mail": -1}}, "E037", '["LIMITS"]["mail"] is -1. Write a whole number, 0 to'),
        ({"LIMITS": {"mail": 2**31}}, "E037", "0 to 2,147,483,647"),
        ({"LIMITS": {"mail": True}}, "E037", '["LIMITS"]["mail"] is True. Write a whole'),
        ({"LIMITS": {"mail": "10/second"}}, "E037", 'or a dict of "LIMIT", "RATE" or both'),
        ({"LIMITS": {"mail": {}}}, "E037", 'or a dict of "LIMIT", "RATE" or both'),
        ({"LIMITS": {"mail": {"LIMIT": 1.5}}}, "E037", '["mail"]["LIMIT"] is 1.5. Write a whole'),
        ({"LIMITS": {"mail": {"LIMIT": None}}}, "E037", 'or leave "LIMIT" out'),
        ({"LIMITS": {"mail": {"RATE": "fast"}}}, "E037", "is 'fast'. Write starts and a period"),
        ({"LIMITS": {"mail": {"RATE": 10}}}, "E037", "is 10. Write starts and a period"),
        ({"LIMITS": {"mail": {"NUMBER": 5}}}, "E037", "'NUMBER'. Known are: LIMIT, RATE"),
    ],
)
def test_every_wrong_value_is_named_with_what_to_write(values, code, words):
    _, problems = read(values)
    (problem,) = problems
    assert problem.code == code
    assert words in f"{problem.text} {problem.hint}"


@pytest.mark.parametrize(
    ("key", "value", "code"),
    [
        ("QUEUE", ["a"], "E005"),
        ("QUEUES", [], "E006"),
        ("QUEUES", "default", "E006"),
        ("QUEUES", ["a", "a"], "E006"),
        ("QUEUES", [""], "E006"),
        ("QUEUES", ["q" * 101], "E006"),
        ("QUEUES", {"a": 0}, "E006"),
        ("QUEUES", {"a": 1.5}, "E006"),
        ("POOL_SIZE", 0, "E007"),
        ("POOL_SIZE", True, "E007"),
        ("PUMPS", 0, "E008"),
        ("MAX_CLAIM_BATCH", 501, "E009"),
        ("MAX_OUTCOME_BATCH", 0, "E010"),
        ("POLL_INTERVAL", 0, "E011"),
        ("POLL_INTERVAL", float("nan"), "E011"),
        ("POLL_INTERVAL", "1s", "E011"),
        ("MAX_POLL_INTERVAL", 0.5, "E012"),
        ("MAINTENANCE_INTERVAL", timedelta(0), "E013"),
        ("LEASE_DURATION", 0.5, "E014"),
        ("LEASE_DURATION", 10**12, "E014"),
        ("HEARTBEAT_INTERVAL", 60, "E015"),
        ("SHUTDOWN_TIMEOUT", -1, "E016"),
        ("RETRY", [], "E017"),
        ("PURGE", "no", "E018"),
        ("CONNECTIONS", "pool", "E019"),
    ],
)
def test_every_dial_of_a_group_has_an_id_and_is_named(key, value, code):
    _, problems = read_group(**{key: value})
    (problem,) = problems
    assert problem.code == code
    assert key in problem.text
    assert problem.hint.startswith(("Write", "Known"))


def test_every_dial_has_an_id_of_its_own():
    codes = [*conf.TOP_CODES.values(), *conf.GROUP_CODES.values()]
    shared = {code for code in codes if codes.count(code) > 1}
    assert shared == {"E017"}, "RETRY stands at the top and in a group"


def test_get_config_names_all_that_is_wrong_and_forgets_it_when_it_is_mended():
    with override_settings(BACKWAVE={"HINTS": 1, "HISTORY": 2}):
        with pytest.raises(ConfigurationError) as caught:
            conf.get_config()
        assert 'BACKWAVE["HINTS"] is 1' in str(caught.value)
        assert 'BACKWAVE["HISTORY"] is 2' in str(caught.value)
    assert conf.get_config().hints is True
    assert conf.problems() == ()


def test_config_is_frozen():
    config = conf.get_config()
    with pytest.raises(AttributeError):
        config.hints = False  # type: ignore[misc]  # that it is refused is the point
    with pytest.raises(TypeError):
        config.groups["new"] = None  # type: ignore[index]  # that it is refused is the point
