"""Bugs made on purpose in what follows from an end, and in workflows as a whole."""

from tests.simulation.mutations import Mutation

REACTIONS = (
    Mutation(
        "one end of many goes unobserved",
        "memory.reactions:react",
        "for row in rows for job",
        "for row in rows[:1] for job",
    ),
    Mutation(
        "ends are told of again",
        "memory.reactions:react",
        "tables.endings = tables.endings, []",
        "tables.endings = tables.endings, tables.endings",
    ),
    Mutation(
        "ends of what waited go unobserved",
        "memory.tables:Tables.append",
        "if row.cause is not None and",
        "if row.cause is not None and row.run is not None and",
    ),
    Mutation(
        "a cancelled workflow lets run what runs",
        "memory.workflows:WorkflowDesk._cancel",
        "lease.cancel_requested = True",
        "lease.cancel_requested = lease.cancel_requested",
        first=21,
    ),
    Mutation(
        "a retried workflow keeps what was spent",
        "memory.workflows:WorkflowDesk._bring_back",
        "job.spent, job.due_at, job.deadline, job.unroutable_since = 0,",
        "job.spent, job.due_at, job.deadline, job.unroutable_since = job.spent,",
    ),
    Mutation(
        "a retried workflow does not wait for its parents",
        "memory.workflows:WorkflowDesk._bring_back",
        "self._tables.move(job, born.state, at=self._now)",
        "self._tables.move(job, JobState.SCHEDULED, at=self._now)",
        first=84,
    ),
    Mutation(
        "what is done to a workflow leaves no trace",
        "memory.workflows:WorkflowDesk._audited",
        "self._tables.actions.append(",
        "list().append(",
    ),
    Mutation(
        "a first loss waits",
        "retries:due_after_loss",
        "if attempt == 1:",
        "if attempt == 0:",
    ),
    Mutation(
        "a job that kills its process does not slow down",
        "retries:due_after_loss",
        "if attempt == 1:",
        "if attempt >= 1:",
        first=80,
    ),
)
