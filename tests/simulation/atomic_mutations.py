"""Bugs made on purpose in what becomes of atomic bodies."""

from tests.simulation.mutations import Mutation

ATOMIC = (
    Mutation(
        "writes are kept though the fence refuses",
        "commits:after_fence",
        "row.verdict is Verdict.APPLIED",
        "True",
        first=6,
    ),
    Mutation(
        "what a failed body wrote is committed",
        "commits:after_body",
        "not isinstance(ended, e.AttemptSucceeded)",
        "False",
    ),
    Mutation(
        "a success whose writes are rolled back is reported",
        "commits:after_fault",
        "e.AttemptReleased(lease_id=outcome.lease_id, started_at=outcome.started_at)",
        "e.AttemptSucceeded(outcome.lease_id, outcome.started_at, outcome.finished_at)",
        first=6,
    ),
    Mutation(
        "a commit without an answer is taken for done",
        "commits:after_silence",
        "if recorded:",
        "if True:",
        first=7,
    ),
    Mutation(
        "a commit without an answer is reported again",
        "commits:after_silence",
        "if recorded:",
        "if False:",
        first=15,
    ),
    Mutation(
        "who looks for a commit finds any",
        "memory.reports:is_recorded",
        "job is not None and job.run == run and job.state is JobState.SUCCEEDED",
        "True",
        first=108,
    ),
    Mutation(
        "a committed body keeps its slot",
        "bodies:Bodies.committed",
        "(holdings.running, holdings.buffered, holdings.busy)",
        "(holdings.buffered, holdings.busy)",
    ),
    Mutation(
        "what was decided without a committed body is reported",
        "bodies:Bodies.committed",
        "(holdings.running, holdings.buffered, holdings.busy)",
        "(holdings.running,)",
        first=1101,
    ),
)
