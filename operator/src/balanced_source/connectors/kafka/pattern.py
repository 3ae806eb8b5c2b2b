r"""Topic patterns: the part of RE2 that topic names need, matched in linear time.

A user who may create a BalancedSource could stop the operator with a pattern that backtracks, so
it becomes an `Automaton`. Length, size and depth of a pattern are bounded. The same text means the
same in RE2, which the API server uses when it checks the field.

Understood: literals, ``.``, ``[a-z]``, ``[^…]``, ``\d \w \s`` and their opposites, escaped
punctuation, groups ``( )``, ``(?: )``, alternatives ``|``, the repetitions ``* + ? {m} {m,} {m,n}``
(also with a following ``?``), and ``^``, ``$`` at the ends, which change nothing: the whole name
must match.
"""

from functools import lru_cache
from typing import Final, NoReturn

from balanced_source.connectors.automaton import Automaton, One, Program, Test, either, repeated

MAX_LENGTH: Final = 512
"""Characters of a pattern."""

MAX_STATES: Final = 512
"""Size of an automaton: twice the length of a topic name."""

MAX_DEPTH: Final = 32
"""Groups within groups."""

MAX_REPEAT: Final = 1000
"""Largest number in braces, as in RE2."""


class PatternError(ValueError):
    """No pattern of the understood kind; says what, and where."""


@lru_cache(maxsize=256)
def compiled(text: str) -> Automaton:
    """Returns the automaton of a pattern.

    Raises:
        PatternError: it is not of the understood kind, or too large.
    """
    if len(text) > MAX_LENGTH:
        raise PatternError(
            f"the pattern has {len(text)} characters: at most {MAX_LENGTH} are allowed"
        )
    return Automaton(_PatternParser(text).program())


class _PatternParser:
    """Recursive descent; each method returns the program of what it read."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0
        self._end = len(text) - 1 if text.endswith("$") and not text.endswith("\\$") else len(text)

    def program(self) -> Program:
        if self._peek() == "^":
            self._at += 1
        program = self._alternatives()
        if self._at < self._end:
            self._refuse("unbalanced )")
        return program

    def _alternatives(self) -> Program:
        options = [self._sequence()]
        while self._take("|"):
            options.append(self._sequence())
        program = options.pop()
        for option in reversed(options):
            program = self._sized(either(option, program))
        return program

    def _sequence(self) -> Program:
        program: Program = ()
        while self._at < self._end and self._peek() not in "|)":
            program = self._sized(program + self._repeated())
        return program

    def _repeated(self) -> Program:
        start = self._at
        atom = self._atom()
        bounds = self._bounds()
        if bounds is None:
            return atom
        self._take("?")
        if self._at < self._end and self._peek() in "*+?":
            self._refuse("a repetition of a repetition; put it into a group")
        low, high = bounds
        # Before the program is made: nested repetitions multiply.
        if len(atom) * max(low, high or 0) > MAX_STATES:
            self._refuse("too many repetitions", start)
        return self._sized(repeated(atom, low, high))

    def _bounds(self) -> tuple[int, int | None] | None:
        simple: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
        if (character := self._peek()) in simple:
            self._at += 1
            return simple[character]
        return self._braces() if character == "{" else None

    def _braces(self) -> tuple[int, int | None]:
        inside, brace, _ = self._text[self._at + 1 :].partition("}")
        low, comma, high = inside.partition(",")
        is_number = (
            low.isascii() and low.isdigit() and (not high or (high.isascii() and high.isdigit()))
        )
        if not brace or not is_number:
            self._refuse("{ begins a repetition like {2,5}; write \\{ for the character")
        least, most = int(low), int(high) if high else (None if comma else int(low))
        if least > MAX_REPEAT or (most is not None and not least <= most <= MAX_REPEAT):
            self._refuse(f"repetitions go from 0 to {MAX_REPEAT}")
        self._at += len(inside) + 2
        return least, most

    def _atom(self) -> Program:
        character = self._next()
        match character:
            case "(":
                return self._group()
            case "[":
                return (One(self._class()),)
            case ".":
                return (One(lambda _: True),)
            case "\\":
                return (One(self._escape()),)
            case "*" | "+" | "?" | "{":
                self._refuse("nothing to repeat", self._at - 1)
            case "^" | "$":
                self._refuse(
                    f"{character} in the middle: the whole name is matched anyway", self._at - 1
                )
            case _:
                pass
        return (One(lambda c: c == character),)

    def _group(self) -> Program:
        start = self._at - 1
        if self._take("?") and not self._take(":"):
            self._refuse("only plain groups: no look-around, names or flags", start)
        self._depth += 1
        # The parser recurses, and Python's stack is limited.
        if self._depth > MAX_DEPTH:
            self._refuse(f"more than {MAX_DEPTH} groups within each other", start)
        inner = self._alternatives()
        self._depth -= 1
        if not self._take(")"):
            self._refuse("( without )", start)
        return inner

    def _escape(self) -> Test:
        character = self._next("\\ at the end")
        if character in _CLASSES:
            return _CLASSES[character]
        if character.isalnum():
            self._refuse(
                f"\\{character} is not understood: no back references, no anchors", self._at - 2
            )
        return lambda c: c == character

    def _class(self) -> Test:
        start = self._at - 1
        is_negated, tests = self._take("^"), list[Test]()
        while self._peek() != "]" or not tests:
            if self._at >= self._end:
                self._refuse("[ without ]", start)
            tests.append(self._member())
        self._at += 1
        return lambda c: any(test(c) for test in tests) != is_negated

    def _member(self) -> Test:
        first = self._next()
        if first == "\\":
            escaped = self._peek()
            if escaped in _CLASSES:
                self._at += 1
                return _CLASSES[escaped]
            self._escape()
            first = escaped
        if self._peek() != "-" or self._text[self._at + 1 : self._at + 2] in ("]", ""):
            return lambda c: c == first
        self._at += 1
        last = self._next()
        if last == "\\":
            last = self._next()
        if last < first:
            self._refuse(f"{first}-{last} is no range", self._at - 3)
        return lambda c: first <= c <= last

    # --- text -------------------------------------------------------------------------------------

    def _peek(self) -> str:
        return self._text[self._at] if self._at < self._end else ""

    def _next(self, missing: str = "it ends too early") -> str:
        character = self._peek()
        if not character:
            self._refuse(missing)
        self._at += 1
        return character

    def _take(self, character: str) -> bool:
        is_there = self._peek() == character
        self._at += is_there
        return is_there

    def _sized(self, program: Program) -> Program:
        if len(program) > MAX_STATES:
            self._refuse("the pattern is too large: simplify it, or list the topics")
        return program

    def _refuse(self, why: str, at: int | None = None) -> NoReturn:
        raise PatternError(
            f"at character {(self._at if at is None else at) + 1} of {self._text!r}: {why}"
        )


_CLASSES: Final[dict[str, Test]] = {
    "d": lambda c: c.isascii() and c.isdigit(),
    "D": lambda c: not (c.isascii() and c.isdigit()),
    "w": lambda c: c.isascii() and (c.isalnum() or c == "_"),
    "W": lambda c: not (c.isascii() and (c.isalnum() or c == "_")),
    "s": lambda c: c in " \t\n\r\f",
    "S": lambda c: c not in " \t\n\r\f",
}
