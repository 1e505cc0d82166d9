"""What may be seen of values: their shape, or the values less the secrets."""

import pytest

from backwave_django.admin.sensitive import MASK, is_secret, shape_of, size_of, values_of


@pytest.mark.parametrize(
    "name", ["password", "API_KEY", "accessToken", "client_secret", "Cookie", "signature", "pass"]
)
def test_names_of_secrets_are_known(name):
    assert is_secret(name)


@pytest.mark.parametrize("name", ["order_id", "user", 7, None, ""])
def test_other_names_are_no_secrets(name):
    assert not is_secret(name)


def test_secrets_are_masked_however_deep_they_are():
    text = values_of('{"a": [{"token": "hunter2", "b": {"password": {"c": "hunter3"}}}]}')
    assert "hunter" not in text
    assert text.count(MASK) == 2


def test_shape_tells_keys_types_and_sizes_only():
    text = shape_of('{"a": "hunter2", "b": [1, "x"], "c": null, "d": {"e": 1.5}, "f": []}')
    for words in ("str(7)", "list(2) of int, str", "NoneType", "float", "list(0) of nothing"):
        assert words in text
    assert "hunter2" not in text


def test_call_by_names_is_shown_as_its_arguments():
    assert '"args"' not in values_of('{"args": [], "kwargs": {"order_id": 42}}')
    assert '"args"' in values_of('{"args": [42], "kwargs": {}}')


def test_shape_of_many_keys_is_summed_up():
    keys = ", ".join(f'"k{n}": 1' for n in range(60))
    assert "10 more" in shape_of(f"{{{keys}}}")


def test_nothing_is_nothing():
    assert (shape_of(None), values_of(None), size_of(None)) == ("", "", 0)
    assert size_of('"é"') == 4
