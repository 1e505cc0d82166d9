"""What goes wrong, looked up by what it acts on."""

from dataclasses import dataclass

from tests.simulation.plans import Fault, Plan

FOREVER = float("inf")


@dataclass(frozen=True)
class Window:
    """A span in which something holds."""

    begins: float
    ends: float
    how: str = ""

    def covers(self, time: float) -> bool:
        return self.begins <= time < self.ends

    def meets(self, begins: float, ends: float) -> bool:
        return self.begins <= ends and begins < self.ends


class Weather:
    """The faults of a plan, as questions."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._cut_off: dict[int, list[Window]] = {}
        self.outages: list[Window] = []
        self._hints: dict[int, list[Window]] = {}
        self._trips: dict[tuple[int, str, int], str] = {}
        self._slow: dict[tuple[int, int], float] = {}
        self.timed: list[Fault] = []
        for fault in plan.faults:
            self._sort(fault)

    def _sort(self, fault: Fault) -> None:
        window = Window(
            fault.at, fault.at + fault.lasts if fault.lasts >= 0 else FOREVER, fault.how
        )
        match fault.kind:
            case "isolate" if fault.node is not None:
                self._cut_off.setdefault(fault.node, []).append(window)
            case "outage":
                self.outages.append(window)
            case "hints" if fault.node is not None:
                self._hints.setdefault(fault.node, []).append(window)
            case "round trip" if fault.node is not None:
                self._trips[fault.node, fault.what, fault.nth] = fault.how
            case "slow body":
                self._slow[int(fault.what), fault.nth] = fault.lasts
            case _:
                self.timed.append(fault)

    @property
    def clears_at(self) -> float:
        """When the last fault that heals has healed."""
        windows = [self.outages, *self._cut_off.values()]
        spans = [one.ends for some in windows for one in some if one.ends != FOREVER]
        spans += [fault.at + max(fault.lasts, 0.0) for fault in self.timed]
        return max(spans, default=0.0)

    def is_down(self, time: float) -> bool:
        """Whether the store is out for everybody."""
        return any(window.covers(time) for window in self.outages)

    def is_cut_off(self, node: int, time: float) -> bool:
        """Whether a node cannot reach the store."""
        return self.is_down(time) or any(w.covers(time) for w in self._cut_off.get(node, ()))

    def was_cut_off(self, node: int, *, begins: float, ends: float) -> bool:
        """Whether a node, for reasons of its own, was cut off at some time between."""
        return any(window.meets(begins, ends) for window in self._cut_off.get(node, ()))

    def down_until(self, time: float) -> float:
        """When the outage that lasts now is over."""
        return max((w.ends for w in self.outages if w.covers(time)), default=time)

    def outage_met(self, *, begins: float, ends: float) -> bool:
        return any(window.meets(begins, ends) for window in self.outages)

    def hint(self, node: int, time: float) -> str:
        """What becomes of a hint that is on its way to a node now."""
        return next((w.how for w in self._hints.get(node, ()) if w.covers(time)), "")

    def trip(self, node: int, what: str, nth: int) -> str:
        """What becomes of the ``nth`` round trip of its kind that a node makes."""
        return self._trips.get((node, what, nth), "")

    def slowed(self, job: int, run: int) -> float:
        """How much longer a body takes than it should."""
        return self._slow.get((job, run), 0.0)
