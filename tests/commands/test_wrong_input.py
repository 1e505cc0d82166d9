"""What was typed wrong is named, with what to write instead."""

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["backwave_why", "123"], "'123' is no job id: write all 36 characters"),
        (["backwave_cancel", "x"], "'x' is no job id"),
        (["backwave_enqueue", "a.b", "--args", "[1"], r"'\[1' is not JSON .*: write '\[42\]' or"),
        (["backwave_enqueue", "a.b", "--args", "5"], "'5' is neither a list nor an object: write"),
        (["backwave_enqueue", "a.b", "--delay", "soon"], "'soon' is no span of time: write 90"),
        (["backwave_pause", "q", "--reason", "r", "--for", "-5m"], "span of time|expected one"),
        (["backwave_pause", "q", "--reason", "r", "--for", "0"], "'0' is no span of time"),
        (["backwave_pause", "q", "--reason", "r", "--until", "noon"], "'noon' is no instant: wr"),
        (["backwave_pause", "q", "--reason", "r", "--until", "2026-02-31T10:00"], "is no instant"),
    ],
)
def test_a_wrong_argument_says_what_to_write(arguments, told):
    with pytest.raises(CommandError, match=told):
        call_command(*arguments)
