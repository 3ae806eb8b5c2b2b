"""The search: breadth first over all states of a model, for the shortest trace to a breach.

Liveness needs no fairness argument beyond "whoever can continue, does at some time": when the steps
of the protocol form no cycle, every run without further disturbances ends, whatever the order; so
it is enough that every state in which it may end is settled.
"""

import time
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field

from proof.model import Model
from proof.shell import quiet
from proof.values import Label, Setting, World

Progress = Callable[["Report"], None]


@dataclass(slots=True, kw_only=True)
class Report:
    """What a search has seen.

    Attributes:
        setting: what was explored.
        states: number of different ones.
        transitions: number of steps, those that change nothing not counted.
        depth: length of the longest of all shortest ways to a state.
        frontier: states that were found and not yet looked at.
        ends: states in which nothing can happen without a disturbance.
        turns: distinct turns of the operator that were computed.
        seconds: processor time that it took.
        is_cut: whether the search ended at its limit; then all states closer than `depth` were
            looked at.
        problem: the rule that was broken first; None if all hold.
        trace: what happened until then, shortest.
        kinds: the disturbances among it.
    """

    setting: Setting
    states: int = 0
    transitions: int = 0
    depth: int = 0
    frontier: int = 0
    ends: int = 0
    turns: int = 0
    seconds: float = 0.0
    is_cut: bool = False
    problem: str | None = None
    trace: list[Label] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)

    @property
    def broken(self) -> str:
        """The problem as the rules name it; empty if there is none.

        An exception of the code counts as a broken contract only if it says so: code that falls
        over its own feet shows nothing.
        """
        return (
            (self.problem or "")
            .removeprefix("Violation: ")
            .replace("ContractViolationError", "contract", 1)
        )


class Explorer:
    """One search."""

    def __init__(
        self, setting: Setting, progress: Progress = lambda _: None, *, limit: int | None = None
    ) -> None:
        """A search through `setting`; `limit` ends it early, unfinished, after that many states."""
        self.model = Model(setting)
        self.report = Report(setting=setting)
        self._progress = progress
        self._limit = limit
        self._worlds: list[World] = []
        self._numbers: dict[World, int] = {}
        self._parents = array("l")
        self._labels: dict[tuple[Label, str], int] = {}
        self._by = array("l")
        self._edges = array("l")  # free steps, grouped by the state that they start from
        self._first_edge = array("l", [0])
        self._began = 0.0

    def run(self) -> Report:
        """Visit everything, or stop at the first broken rule."""
        with quiet():
            return self._run()

    def _run(self) -> Report:
        self._began = time.process_time()
        self._visit(self.model.first(), -1, (("nothing runs",), ""))
        self._search()
        if self.report.problem is None and not self.report.is_cut:
            self._check_runs_end()
        self._tell()
        return self.report

    def _search(self) -> None:
        number, level_ends = 0, 1
        while number < len(self._worlds) and self.report.problem is None:
            if self._limit is not None and len(self._worlds) >= self._limit:
                self.report.is_cut = True
                return
            if number == level_ends:
                self.report.depth, level_ends = self.report.depth + 1, len(self._worlds)
            self._expand(number)
            number += 1
            if number % 5000 == 0:
                self._tell(number)

    def _expand(self, number: int) -> None:
        world = self._worlds[number]
        steps = self.model.steps(world)
        self.report.transitions += len(steps)
        for step in steps:
            if step.problem is not None:
                self._found(step.problem, number, (step.label, step.kind))
                return
            target = self._visit(step.world, number, (step.label, step.kind))
            if not step.kind:
                self._edges.append(target)
        # Only a source that is changed may give splits to queries that have ended in order.
        if len(self._edges) == self._first_edge[-1] and self.report.setting.budget.edits:
            for step in self.model.again(world):
                self._edges.append(self._visit(step.world, number, (step.label, step.kind)))
        self._first_edge.append(len(self._edges))
        if self._first_edge[-2] == self._first_edge[-1]:
            self.report.ends += 1
            if (problem := self.model.unsettled(world)) is not None:
                self._found(problem, number, None)

    def _visit(self, world: World, parent: int, label: tuple[Label, str]) -> int:
        number = self._numbers.get(world)
        if number is None:
            number = self._numbers[world] = len(self._worlds)
            self._worlds.append(world)
            self._parents.append(parent)
            self._by.append(self._labels.setdefault(label, len(self._labels)))
        return number

    def _check_runs_end(self) -> None:
        """Take away states that nothing leads to, again and again.

        What stays lies on, or behind, a cycle.
        """
        incoming = array("l", bytes(self._parents.itemsize * len(self._worlds)))
        for target in self._edges:
            incoming[target] += 1
        ready = [number for number, count in enumerate(incoming) if not count]
        done = 0
        while ready:
            number = ready.pop()
            done += 1
            for target in self._edges[self._first_edge[number] : self._first_edge[number + 1]]:
                incoming[target] -= 1
                if not incoming[target]:
                    ready.append(target)
        if done < len(self._worlds):
            self._found(
                "liveness: steps of the protocol go round in a circle",
                self._on_cycle(incoming),
                None,
            )

    def _on_cycle(self, incoming: "array[int]") -> int:
        return next(number for number, count in enumerate(incoming) if count)

    def _found(self, problem: str, number: int, label: tuple[Label, str] | None) -> None:
        labels = list(self._labels)
        trace = [] if label is None else [label]
        while number > 0:
            trace.append(labels[self._by[number]])
            number = self._parents[number]
        self.report.problem, self.report.trace = problem, [name for name, _ in reversed(trace)]
        self.report.kinds = [kind for _, kind in reversed(trace) if kind]

    def _tell(self, number: int = 0) -> None:
        self.report.states = len(self._worlds)
        self.report.seconds = time.process_time() - self._began
        self.report.frontier = len(self._worlds) - number if number else 0
        self.report.turns = self.model.operators.computed
        self._progress(self.report)
