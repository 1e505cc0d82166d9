"""Plans drawn from a seed: one number decides the cluster, the work and what goes wrong."""

from random import Random  # noqa: TID251 - seeded here, and nowhere else in a run

from backwave_django.core.states import TERMINAL
from tests.simulation.plans import (
    Action,
    Behaviour,
    Fault,
    Group,
    JobPlan,
    NodePlan,
    Plan,
    SchedulePlan,
)

WIRE_NAMES = ("once", "twice", "hasty", "rare", "unknown")
QUEUES = ("a", "b", "c")
KEYS = ("k1", "k2")
#: Bodies are short up to here, in seconds.
MODERATE = 6.0
COMMANDS = (
    "Claim",
    "Claim",
    "Report",
    "Report",
    "Turn",
    "Turn",
    "Release",
    "Heartbeat",
    "Recover",
    "ExpireLeases",
    "Settle",
    "Dispose",
    "LoadSchedules",
    "Mint",
)
#: What may become of the statements of an atomic body's worker.
ATOMIC_FAULTS = (
    ("Begin", "before"),
    ("Commit", "after"),
    ("Commit", "after"),
    ("Commit", "late"),
    ("Commit", "late"),
    ("Commit", "before"),
    ("Commit", "slow"),
    ("Commit", "slow"),
    ("Commit", "crash"),
    ("Commit", "freeze"),
    ("Fence", "freeze"),
    ("Fence", "freeze"),
    ("Fence", "after"),
    ("Fence", "slow"),
    ("Fence", "crash"),
    ("Look", "before"),
    ("Look", "slow"),
)
#: Everything that may go wrong; a run draws which of these it has, and how much of each.
FAULT_KINDS = (
    "crash",
    "isolate",
    "suspend",
    "round trip",
    "outage",
    "hints",
    "clock",
    "database clock",
    "slow body",
    "hold",
    "leave",
)


def draw(seed: int, *, level: str | None = None) -> Plan:
    """Return the plan of a seed."""
    rng = Random(seed)  # noqa: S311 - a simulation, not a secret
    level = level or rng.choice(("none", "healing", "healing", "healing", "permanent"))
    ends = rng.uniform(20, 70)
    lease = rng.choice((6.0, 12.0, 30.0))
    groups = _groups(rng)
    nodes = [
        NodePlan(
            group=rng.choice(groups).name if number else groups[0].name,
            start=rng.choice((0.0, 0.0, rng.uniform(0, ends / 2))),
            tells_of_the_dead=rng.random() < 0.4,
        )
        for number in range(max(len(groups), rng.randint(1, 4)))
    ]
    # Every group has a node, else its queues have nobody.
    for number, group in enumerate(groups):
        nodes[number] = NodePlan(
            group=group.name, tells_of_the_dead=nodes[number].tells_of_the_dead
        )
    # Half of the runs have bodies that outlive their leases: there the fences are tried.
    longest = lease * rng.choice((0.2, 3.5))
    jobs = _jobs(rng, ends=ends, longest=longest)
    schedules = _schedules(rng)
    plan = Plan(
        seed=seed,
        level=level,
        lease=lease,
        heartbeat=lease / rng.choice((2.5, 3.0, 4.0)),
        grace=rng.choice((5.0, 20.0)),
        ends=ends,
        groups=groups,
        nodes=nodes,
        jobs=jobs,
        schedules=schedules,
        actions=[
            *_actions(rng, jobs=jobs, schedules=schedules, nodes=len(nodes), ends=ends),
            *_rates(seed, ends=ends),
            *_windows(seed, ends=ends),
        ],
    )
    faults = [] if level == "none" else _faults(rng, plan)
    # Drawn from a source of its own: the rest of a seed's plan stays what it was without this.
    plan = with_reactions(Random(-1 - seed), Plan(**{**vars(plan), "faults": faults}))  # noqa: S311 - as above
    return with_atomic(Random(f"atomic bodies of {seed}"), plan)  # noqa: S311 - as above


def with_atomic(rng: Random, plan: Plan) -> Plan:
    """Let the bodies of some job types be atomic, and the end of some of them go wrong."""
    if rng.random() < 0.6:
        return plan
    atomic = [name for name in WIRE_NAMES if name != "unknown" and rng.random() < 0.6]
    if not atomic:
        return plan
    faults = list(plan.faults)
    for _ in range(0 if plan.level == "none" else rng.choice((0, 2, 4, 8))):
        what, how = rng.choice(ATOMIC_FAULTS)
        node, nth = rng.randrange(len(plan.nodes)), rng.choice((0, 0, 1, rng.randint(0, 8)))
        faults.append(Fault(kind="round trip", node=node, what=what, nth=nth, how=how))
    return Plan(**{**vars(plan), "atomic": atomic, "faults": faults})


def with_reactions(rng: Random, plan: Plan) -> Plan:
    """Let somebody observe ends, and some batches be workflows that operators act on."""
    observed = [state.value for state in sorted(TERMINAL) if rng.random() < 0.6]
    batches = sorted({job.batch for job in plan.jobs})
    workflows = [batch for batch in batches if rng.random() < 0.5]
    if rng.random() < 0.5:
        observed = []
    if rng.random() < 0.5:
        workflows = []
    actions = list(plan.actions)
    for batch in workflows:
        begins = next(job.at for job in plan.jobs if job.batch == batch)
        for _ in range(rng.choice((0, 1, 1, 3))):
            verb = rng.choice(("cancel", "retry", "retry", "restart"))
            span = 8 if verb == "cancel" else 60
            at = round(begins + rng.uniform(0, span), 3)
            value = float(rng.random() < 0.5)
            actions.append(Action(at=at, kind=f"{verb} workflow", target=str(batch), value=value))
    actions.sort(key=lambda action: action.at)
    more = {"observed": observed, "workflows": workflows, "actions": actions}
    return Plan(**{**vars(plan), **more})


def _groups(rng: Random) -> list[Group]:
    served = rng.choice(([["a", "b", "c"]], [["a", "b"], ["c", "a"]], [["b", "c"], ["a"]]))
    groups = []
    for number, queues in enumerate(served):
        weighted = len(queues) > 1 and rng.random() < 0.5
        knows = [name for name in WIRE_NAMES if name != "unknown" and rng.random() < 0.93]
        poll = rng.choice((0.5, 1.0, 2.0))
        groups.append(
            Group(
                name=f"g{number}",
                queues=queues,
                weights={name: rng.randint(1, 5) for name in queues} if weighted else None,
                pool_size=rng.randint(1, 4),
                batch=rng.randint(1, 4),
                outcome_batch=rng.randint(1, 4),
                poll=poll,
                most_poll=rng.choice((None, poll * 8)),
                maintenance=rng.choice((1.0, 2.0, 5.0)),
                shutdown=rng.choice((1.0, 4.0, 10.0)),
                knows=knows,
            )
        )
    return groups


def _jobs(rng: Random, *, ends: float, longest: float) -> list[JobPlan]:
    jobs: list[JobPlan] = []
    batches = rng.randint(1, 6 if longest > MODERATE else 9)
    linked, keyed = rng.random() < 0.5, rng.random() < 0.4
    for batch in range(batches):
        at = rng.choice((0.0, rng.uniform(0, ends * 0.6)))
        for _ in range(rng.randint(1, 5)):
            parents = _parents(rng, jobs, at=at, batch=batch) if linked else []
            jobs.append(
                _job(rng, at=at, batch=batch, parents=parents, keyed=keyed, longest=longest)
            )
    return jobs


def _parents(rng: Random, before: list[JobPlan], *, at: float, batch: int) -> list[tuple[int, str]]:
    known = [n for n, job in enumerate(before) if job.at < at or job.batch == batch]
    if not known or rng.random() < 0.4:
        return []
    # The chain is as likely as the fan: a cascade must be able to grow long.
    picks = known[-1:] if rng.random() < 0.5 else rng.sample(known, min(len(known), 2))
    return [(n, rng.choice(("on_success", "on_success", "on_any"))) for n in picks]


def _job(
    rng: Random,
    *,
    at: float,
    batch: int,
    parents: list[tuple[int, str]],
    keyed: bool,
    longest: float,
) -> JobPlan:
    return JobPlan(
        at=at,
        batch=batch,
        queue=rng.choice(QUEUES),
        wire_name=rng.choices(WIRE_NAMES, weights=(3, 6, 2, 2, 1))[0],
        priority=rng.choice((0, 0, 0, -10, 10)),
        delay=rng.choice((None, None, None, rng.uniform(0, 20))),
        deadline=rng.choice((None, None, None, None, rng.uniform(0, 30))),
        limit_key=rng.choice((None, None, *KEYS)),
        unique_key=rng.choice((None, *KEYS)) if keyed else None,
        if_duplicate=rng.choice(("allow_after_failure", "reject", "allow", "replace")),
        parents=parents,
        bodies=[_body(rng, longest=longest) for _ in range(_runs(rng, longest=longest))],
    )


def _runs(rng: Random, *, longest: float) -> int:
    """How many runs of a job do something that is worth telling."""
    return rng.choice((1, 1, 2, 3) if longest > MODERATE else (0, 0, 1, 1, 2, 3))


def _body(rng: Random, *, longest: float) -> Behaviour:
    kind = rng.choices(
        (
            "return",
            "raise",
            "give up",
            "snooze",
            "cancel",
            "refuse",
            "arguments",
            "retry after",
            "undecodable",
        ),
        weights=(12, 9, 1, 2, 1, 1, 1, 1, 1),
    )[0]
    spans = (0.01, 0.3, rng.uniform(0.1, longest), rng.uniform(0.1, longest))
    span = rng.choice(spans[2:] if longest > MODERATE and rng.random() < 0.7 else spans)
    return (kind, round(span, 3), rng.random() < 0.6)


def _schedules(rng: Random) -> list[SchedulePlan]:
    return [
        SchedulePlan(
            name=f"s{number}",
            every=rng.choice((2.0, 5.0, 13.0)),
            queue=rng.choice(QUEUES),
            wire_name=rng.choice(("twice", "rare")),
            no_overlap=rng.random() < 0.5,
            catch_up=rng.choice(("skip", "coalesce")),
        )
        for number in range(rng.choice((0, 0, 0, 1, 2)))
    ]


def _actions(
    rng: Random,
    *,
    jobs: list[JobPlan],
    schedules: list[SchedulePlan],
    nodes: int,
    ends: float,
) -> list[Action]:
    actions = []
    for schedule in schedules:
        if rng.random() < 0.4:
            kind = rng.choice(("pause schedule", "resume schedule", "trigger"))
            at = round(rng.uniform(0, ends), 3)
            actions.append(Action(at=at, kind=kind, target=schedule.name))
    for _ in range(rng.choice((0, 0, 1, 2, 4, 8))):
        at = round(rng.uniform(0, ends), 3)
        kind = rng.choice(
            ("cancel", "cancel", "requeue", "run now", "pause", "queue limit", "key limit", "drain")
        )
        if kind in {"cancel", "requeue", "run now"}:
            number = rng.randrange(len(jobs))
            # Not long after the job came, when it runs or has just ended.
            at = round(jobs[number].at + rng.uniform(0, 40 if kind == "requeue" else 8), 3)
            actions.append(Action(at=at, kind=kind, target=str(number)))
        elif kind == "drain":
            actions.append(Action(at=at, kind=kind, target=str(rng.randrange(nodes))))
        else:
            names = KEYS if kind == "key limit" else QUEUES
            value = rng.choice((1.0, 1.0, 2.0)) if "limit" in kind else rng.uniform(1, 20)
            actions.append(Action(at=at, kind=kind, target=rng.choice(names), value=value))
    return sorted(actions, key=lambda action: action.at)


def _rates(seed: int, *, ends: float) -> list[Action]:
    """Rates come from numbers of their own: the rest of each seed stays as it was without them."""
    rng = Random(f"rates of {seed}")  # noqa: S311 - as above
    actions = []
    for _ in range(rng.choice((0, 0, 0, 0, 0, 1, 1, 2))):
        kind, names = rng.choice((("queue rate", QUEUES), ("key rate", KEYS)))
        at, value = round(rng.uniform(0, ends / 2), 3), rng.choice((1.0, 2.0, 5.0))
        actions.append(Action(at=at, kind=kind, target=rng.choice(names), value=value))
    return actions


def _windows(seed: int, *, ends: float) -> list[Action]:
    """Windows and limit patterns, from numbers of their own for the same reason."""
    rng = Random(f"windows of {seed}")  # noqa: S311 - as above
    actions = []
    for _ in range(rng.choice((0, 0, 0, 0, 1, 1, 2))):
        at = round(rng.uniform(0, ends / 2), 3)
        if rng.random() < 0.6:
            actions.append(Action(at=at, kind="window", target=rng.choice(QUEUES)))
        else:
            value = rng.choice((1.0, 2.0))
            actions.append(Action(at=at, kind="pattern limit", target="k*", value=value))
    return actions


def _faults(rng: Random, plan: Plan) -> list[Fault]:
    kinds = [kind for kind in FAULT_KINDS if rng.random() < 0.45]
    faults: list[Fault] = []
    for kind in kinds:
        most = (3, 6, 12) if kind == "round trip" else (1, 1, 2, 4)
        faults += [_fault(rng, kind, plan) for _ in range(rng.choice(most))]
    return sorted(faults, key=lambda fault: fault.at)


def _fault(rng: Random, kind: str, plan: Plan) -> Fault:
    node = rng.randrange(len(plan.nodes))
    # Most of the work is done early, and a fault needs work to do harm.
    at = round(rng.uniform(0, plan.ends * rng.choice((0.4, 1.0))), 3)
    lasts = round(rng.choice((rng.uniform(0.1, 3), rng.uniform(1, 2.5 * plan.lease))), 3)
    how = ""
    if kind == "hints":
        how = rng.choice(("lost", "doubled", "late"))
    elif kind in {"clock", "database clock"}:
        # Never so little that nobody need notice, never so much that the run takes for ever.
        lasts = rng.choice((-1, 1)) * rng.choice((0.4, 2.0, plan.lease, 4 * plan.lease))
    elif kind == "suspend":
        how = rng.choice(("clock goes on", "clock stops"))
    elif kind == "round trip":
        how = rng.choices(
            ("before", "after", "late", "slow", "between", "fatal"), weights=(4, 8, 8, 4, 4, 1)
        )[0]
        what = "Turn" if how == "between" else rng.choice(COMMANDS)
        return Fault(
            kind=kind, node=node, what=what, nth=rng.choice((0, 0, 1, rng.randint(0, 12))), how=how
        )
    elif kind in {"slow body", "hold"}:
        what = str(rng.randrange(len(plan.jobs)))
        at = round(plan.jobs[int(what)].at + rng.uniform(0, 10), 3)
        return Fault(kind=kind, what=what, nth=rng.randint(1, 3), at=at, lasts=lasts)
    if plan.level == "permanent" and kind in {"crash", "isolate", "outage"} and rng.random() < 0.5:
        lasts = -1.0  # it never heals
    return Fault(kind=kind, node=node, at=at, lasts=lasts, how=how)
