import pytest

from backwave_django.core.errors import ConfigurationError
from backwave_django.jobs import manifest
from backwave_django.jobs.job_type import Declaration, JobType
from backwave_django.jobs.manifest import Change


def send(
    order_id: int, note: "str" = "", *more: int, urgent: bool = False, **extra: object
) -> None:
    """Every kind of parameter."""


def of(code, wire_name="shop.send", **declared):
    return manifest.entries([JobType(code, Declaration(wire_name=wire_name, **declared))])


def taking(*names, **declared):
    """The manifest of a function with these parameters, as they are written in a signature."""
    scope: dict[str, object] = {}
    exec(f"def body({', '.join(names)}): return None", {"__name__": __name__}, scope)  # noqa: S102
    return of(scope["body"], **declared)


def test_it_lists_what_waiting_jobs_rely_on():
    found = of(send, queue="mail", version=2, aliases=("shop.mail", "a.send"))
    assert found == {
        "shop.send": {
            "queue": "mail",
            "version": 2,
            "aliases": ["a.send", "shop.mail"],
            "parameters": [
                "order_id: int",
                "note: 'str' = ...",
                "*more: int",
                "urgent: bool = ...",
                "**extra: object",
            ],
        }
    }


def test_its_text_has_a_line_for_each_wire_name_and_comes_back():
    found = {**of(send, "b.send"), **of(send, "a.send")}
    text = manifest.render(dict(sorted(found.items())))
    assert [line.split(":")[0].strip() for line in text.splitlines()[1:-1]] == [
        '"a.send"',
        '"b.send"',
    ]
    assert manifest.parse(text) == found
    assert manifest.parse(manifest.render({})) == {}


@pytest.mark.parametrize("text", ["", "[]", '{"a": 1}'])
def test_what_is_no_manifest_is_refused(text):
    with pytest.raises(ConfigurationError, match="job manifest"):
        manifest.parse(text)


def test_nothing_changed():
    assert manifest.changes(of(send), of(send)) == ()


def test_a_name_that_is_gone_breaks_unless_it_is_an_alias():
    gone = Change("shop.send", "it is gone: jobs that wait under it need it as an alias", True)  # noqa: FBT003
    assert manifest.changes(of(send), {}) == (gone,)
    renamed = of(send, "shop.mail", aliases=("shop.send",))
    assert manifest.changes(of(send), renamed) == (Change("shop.mail", "it is new", breaks=False),)


def test_an_alias_that_is_gone_breaks_and_a_new_one_does_not():
    without, with_one = of(send), of(send, aliases=("shop.old",))
    assert manifest.changes(with_one, without) == (
        Change(
            "shop.send", "its alias shop.old is gone: jobs that wait under it need it", breaks=True
        ),
    )
    assert manifest.changes(without, with_one) == (
        Change("shop.send", "it has the alias shop.old", breaks=False),
    )


def test_an_alias_may_become_the_name_of_a_job_type_or_move_to_another():
    before = of(send, aliases=("shop.old",))
    moved = {**of(send), **of(send, "shop.other", aliases=("shop.old",))}
    assert [change.breaks for change in manifest.changes(before, moved)] == [False]
    renamed = of(send, "shop.old", aliases=("shop.send",))
    assert not any(change.breaks for change in manifest.changes(before, renamed))


@pytest.mark.parametrize(
    ("before", "after", "text", "breaks"),
    [
        (taking("a"), taking("a", queue="mail"), "its queue is mail, it was default", False),
        (taking("a"), taking("a", "b"), "it takes b", True),
        (taking("a"), taking("a", "b", version=2), "it takes b", False),
        (taking("a"), taking("a", "b=1"), "it takes b = ...", False),
        (taking("a"), taking("a", "*b"), "it takes *b", False),
        (taking("a", "b"), taking("a"), "it no longer takes b", True),
        (taking("a", "b"), taking("a", version=2), "it no longer takes b", False),
        (taking("a", "*b"), taking("a"), "it no longer takes *b", False),
        (taking("a: int"), taking("a: str"), "it takes a: str, it took a: int", False),
        (taking("a", version=2), taking("a"), "its version went back to 1 from 2", True),
    ],
)
def test_changes_are_named_and_those_that_leave_jobs_behind_are_told_apart(
    before, after, text, breaks
):
    assert manifest.changes(before, after) == (Change("shop.send", text, breaks),)


def test_a_body_that_takes_anything_still_takes_what_it_took():
    found = manifest.changes(taking("a", "b"), taking("a", "**more"))
    assert [(change.text, change.breaks) for change in found] == [
        ("it no longer takes b", False),
        ("it takes **more", False),
    ]
