import json
import string
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backwave_django.core.errors import UndecodablePayload
from backwave_django.jobs.payload import decode


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "not JSON: Expecting value"),
        ("not json", "not JSON: Expecting value"),
        ('{"args": [1', "not JSON: Expecting ',' delimiter"),
        ("1 2", "not JSON: Extra data"),
        ("\ufeff1", "not JSON: "),
        ("NaN", "not JSON: NaN is not a number"),
        ("[-Infinity]", "not JSON: -Infinity is not a number"),
        ("[1e999]", "not JSON: a number is out of the range of a float"),
        ("9" * 5000, "not JSON: Exceeds the limit"),
        ("[" * 100_000, "nested too deeply"),
        (None, "expected JSON text, found NoneType"),
        (7, "expected JSON text, found int"),
        (b"{}", "expected JSON text, found bytes"),
        ({"args": []}, "expected JSON text, found dict"),
        ('{"$set":[1]}', "unknown tag '$set'"),
        ('[{"$":1}]', "unknown tag '$'"),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_f067_damaged_text_is_undecodable_with_a_reason(text, problem):
    with pytest.raises(UndecodablePayload) as caught:
        decode(text)
    assert problem in caught.value.problem


@pytest.mark.parametrize(
    ("tag", "contents"),
    [
        ("datetime", ["secret", 5, None, "2026-13-01T00:00:00"]),
        ("date", ["secret", 5, "2026-02-30"]),
        ("time", ["secret", 5, "25:00"]),
        ("timedelta", ["secret", 5, [1, 2], [1, 2, "3"], [10**12, 0, 0]]),
        ("decimal", ["secret", 5, "NaN", "Infinity", [0, [1], 0]]),
        ("float", ["secret", 5, "nan", "inf", "1e999"]),
        ("int", ["secret", 5, "", "1.5"]),
        ("uuid", ["secret", 5, "1234"]),
        ("bytes", ["secret", 5, "é", "!!!!"]),
        ("tuple", ["secret", 5, {}, None]),
        ("event", ["secret", 5, {}, {"state": "no"}, {"state": "expired", "cause": "deadline"}]),
    ],
)
def test_a_tag_with_content_that_does_not_fit_is_undecodable(tag, contents):
    for content in contents:
        with pytest.raises(UndecodablePayload) as caught:
            decode(json.dumps({f"${tag}": content}))
        assert caught.value.problem == f"the content of a tag ${tag} does not fit it"


@given(st.text(string.printable) | st.from_regex(r'\{"\$[a-z]+": ?[\[\]{}"0-9a-f,:]*\}'))
def test_reading_any_text_gives_a_value_or_undecodable(text):
    with suppress(UndecodablePayload):
        decode(text)
