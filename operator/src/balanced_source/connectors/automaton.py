"""Automata that match text in linear time, for patterns that users write.

Python's `re` backtracks: ``(a|a)*b``, or ``*a*a*a*b`` as a pattern of paths, takes minutes on a
name of thirty letters and holds the interpreter's lock meanwhile. Here all states that a pattern
can be in are advanced together, so a match takes at most (length of the text) × (size of the
automaton) / 8 steps. Pure.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

KEPT: Final = 4096
"""Characters, and sets of states, that an automaton remembers."""

Test: TypeAlias = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class One:
    """Reads a character that passes the test, then goes to the next state."""

    test: Test


@dataclass(frozen=True, slots=True)
class Fork:
    """Continues in all of these states at once; steps are relative."""

    steps: tuple[int, ...]


State: TypeAlias = One | Fork
Program: TypeAlias = tuple[State, ...]


class _Node(dict[str, "_Node"]):
    """A set of states, with the node that follows each character seen so far."""

    __slots__ = ("states",)

    def __init__(self, states: int) -> None:
        super().__init__()
        self.states = states


class Automaton:
    """Matches whole texts by a program.

    A set of states is one integer with a bit per state. The set that follows a character is
    remembered, so most texts cost one look-up per character. For a new set, eight states at a time
    are looked up in a table that fills as it is used.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        self._reading: dict[str, int] = {}
        self._following: dict[tuple[int, int], int] = {}
        self._spreads: dict[int, int] = {}
        self._nodes: dict[int, _Node] = {}
        self._edges = 0
        self._dead = _Node(0)
        self._first = _Node(_spread(program, 0))

    def matches(self, text: str) -> bool:
        """Return whether the whole text matches."""
        node, dead = self._first, self._dead
        # A loop without calls: a listing matches a million names.
        for character in text:
            following = node.get(character)
            if following is None:
                following = self._follow(node, character)
            if following is dead:
                return False
            node = following
        return bool(node.states >> len(self._program))

    def _follow(self, node: _Node, character: str) -> _Node:
        """Return the node that follows a character, and remember it."""
        # Names are other people's, so what is remembered of them must be bounded.
        if self._edges >= KEPT:
            self._forget()
        reading = node.states & self._readers(character)
        after = self._after(reading) if reading else 0
        following = self._nodes.setdefault(after, _Node(after)) if after else self._dead
        node[character] = following
        self._edges += 1
        return following

    def _forget(self) -> None:
        # Nodes refer to each other. A copy: threads share an automaton.
        for node in (self._first, *self._nodes.values()):
            node.clear()
        self._nodes.clear()
        self._edges = 0

    def _readers(self, character: str) -> int:
        """Return the states that read this character."""
        mask = self._reading.get(character)
        if mask is None:
            if len(self._reading) >= KEPT:
                self._reading.clear()
            states = enumerate(self._program)
            mask = sum(
                1 << at for at, one in states if isinstance(one, One) and one.test(character)
            )
            self._reading[character] = mask
        return mask

    def _after(self, states: int) -> int:
        """Return the states that follow these, each of which has read a character."""
        after = 0
        for number, byte in enumerate(states.to_bytes((states.bit_length() + 7) // 8, "little")):
            if byte:
                known = self._following.get((number, byte))
                after |= self._fill(number, byte) if known is None else known
        return after

    def _fill(self, number: int, byte: int) -> int:
        """Return what follows eight states: the union of what follows each of them."""
        union = 0
        for bit in range(8):
            if byte >> bit & 1:
                union |= self._following_one(8 * number + bit)
        if len(self._following) >= KEPT:
            self._following.clear()
        self._following[number, byte] = union
        return union

    def _following_one(self, state: int) -> int:
        known = self._spreads.get(state)
        if known is None:
            known = self._spreads[state] = _spread(self._program, state + 1)
        return known


def _spread(program: Program, state: int) -> int:
    """Return the state, and all that are reached from it without reading, as bits."""
    reached, todo = 1 << state, [state]
    while todo:
        at = todo.pop()
        fork = program[at] if at < len(program) else None
        for step in fork.steps if isinstance(fork, Fork) else ():
            if not reached >> (at + step) & 1:
                reached |= 1 << (at + step)
                todo.append(at + step)
    return reached


def either(*options: Program) -> Program:
    """Return the program that matches what one of some programs matches."""
    starts, program, end = [1], list[State](), sum(len(option) + 1 for option in options)
    for option in options[:-1]:
        program.extend(option)
        program.append(Fork((end - len(program) - 1,)))
        starts.append(len(program) + 1)
    return (Fork(tuple(starts)), *program, *options[-1])


def repeated(atom: Program, low: int, high: int | None) -> Program:
    """Return the program of a repetition; `high` is None for any number."""
    size = len(atom)
    if high is None:
        loop: Program = (Fork((1, size + 2)), *atom, Fork((-size - 1,)))
        return atom * low + loop
    optional: Iterator[State] = (
        state
        for number in range(high - low)
        for state in (Fork((1, (high - low - number) * (size + 1))), *atom)
    )
    return atom * low + tuple(optional)
