import pytest

from backwave_django.core.limits import (
    CODE,
    OPERATOR,
    PATTERN,
    UNLIMITED,
    Cap,
    governing,
    is_pattern,
    source_of,
)

PATTERNS = {"*": Cap(9), "tenant:*": Cap(2), "tenant:b*": Cap(1)}


@pytest.mark.parametrize(
    ("key", "own", "expected"),
    [
        ("tenant:a", None, (Cap(2), "tenant:*")),
        ("tenant:b1", None, (Cap(1), "tenant:b*")),
        ("other", None, (Cap(9), "*")),
        ("tenant:a", (Cap(5), CODE), (Cap(2), "tenant:*")),
        ("tenant:a", (Cap(5), OPERATOR), (Cap(5), "tenant:a")),
        ("tenant:*", (Cap(2), PATTERN), (Cap(2), "tenant:*")),
    ],
)
def test_own_choice_goes_before_the_longest_pattern_and_that_before_code(key, own, expected):
    assert governing(key, own=own, patterns=PATTERNS) == expected


def test_without_a_pattern_code_says_what_holds():
    assert governing("a", own=(Cap(5), CODE), patterns={}) == (Cap(5), "a")
    assert governing("a", own=None, patterns={"b*": Cap(1)}) == (UNLIMITED, "a")


def test_star_at_the_end_makes_a_pattern():
    assert [is_pattern(key) for key in ("a*", "*", "a*b", "a")] == [True, True, False, False]
    assert (source_of("a*"), source_of("a")) == (PATTERN, OPERATOR)
