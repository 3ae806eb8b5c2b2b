"""Finds where the log of a split was cut, from what its leader says of former leaderships. Pure.

A log whose leader has changed may have lost records that were read, and may have got others at the
same positions. The leader answers one question: where do the records of a leadership, and of those
before it, end in your log now? Two logs that both have records of a leadership agree up to the end
of the shorter part of it, because it had one leader. So the check asks for the newest leadership
that was read. If the leader has no records of it, it names the newest former one that it has, and
the check continues with the newest one at or before that of which it knows where it ended in the
log that was read. Asking once is not enough: two leaders in a row may each have records that the
other one never saw (KIP-279).
"""

from typing import Final, NamedTuple

from balanced_source.documents.stream_offset import TermEnd
from balanced_source.host.ends import Mark

KEPT: Final = 3
"""Former leaderships of which a stream offset keeps the end: with 10,000 splits each one costs 100
kB per offset."""

STEPS: Final = 4
"""Leaderships since the mark that are asked for, newest first.

There are seldom more than two between two looks.
"""


class Found(NamedTuple):
    """Says what a check has found.

    Attributes:
        cut: where the log was cut, if that is before the position of the mark.
        past: ends of former leaderships in the present log, oldest first.
    """

    cut: int | None
    past: tuple[TermEnd, ...] = ()


class LogCheck:
    """The check of one split.

    Ask for `question`, hand the answer to `take`, until `question` is None.

    Args:
        mark: up to where the split was read; its `term` must be known.
        term: number of the present leadership; None: unknown.
        steps: see `STEPS`.
        kept: see `KEPT`.
    """

    def __init__(
        self, mark: Mark, term: int | None, *, steps: int = STEPS, kept: int = KEPT
    ) -> None:
        if mark.term is None:
            raise ValueError("the leadership of the mark is unknown")
        self._mark = mark
        # The present leadership has no end yet, so questions begin with the one before it.
        self._newest = mark.term if term is None else term - 1
        self._steps = steps
        self._kept = kept
        # Records behind the mark were not read, so they need not be in the present log.
        self._read = {end.term: min(end.end, mark.position) for end in mark.past} | {
            mark.term: mark.position
        }
        """Leadership → where its records end among those that were read."""
        self._heard: dict[int, TermEnd] = {}
        """Leadership that was asked for → answer."""
        self._common: TermEnd | None = None
        """Of the newest leadership of which both logs have records, as far as that is known."""
        self.question: int | None = mark.term
        """Number of the leadership to ask for; None: everything is known."""
        self._parted = 0
        """Up to where both logs are the same, when `_common` is known."""

    def take(self, answer: TermEnd) -> None:
        """Take the leader's answer to `question`.

        Args:
            answer: newest leadership, at most the one that was asked for, of which the log has
                records, and where they end. If it has none, the numbers are below 0.

        Raises:
            ValueError: there is no open question.
        """
        if self.question is None:
            raise ValueError("the check is complete")
        self._heard[self.question] = answer
        # First where both logs part; then what later checks will need to know of the present log.
        if self._common is None:
            self.question = self._compare(self.question, answer)
        if self._common is not None:
            self.question = self._next_unheard(self._common)

    def found(self) -> Found:
        """Return what was found.

        Raises:
            ValueError: there is an open question.
        """
        if self.question is not None or self._common is None:
            raise ValueError("the check is not complete")
        heard = {answer.term: answer for answer in self._heard.values() if answer.term >= 0}
        known = {
            end.term: end for end in map(self._in_present_log, self._mark.past) if end is not None
        } | heard
        cut = self._parted if self._parted < self._mark.position else None
        # The newest ends only: with 10,000 splits each further one costs 100 kB per offset.
        return Found(cut, tuple(known[term] for term in sorted(known))[-self._kept :])

    def _compare(self, asked: int, answer: TermEnd) -> int | None:
        """Note where both logs part; returns what to ask instead while that is not known."""
        older = [term for term in self._read if term <= answer.term]
        # The leader has none of these records. The newest leadership that both logs may share is
        # the next to ask for: asking once is not enough (KIP-279).
        if answer.term != asked and older and max(older) != answer.term:
            return max(older)
        # Without a former leadership to compare with, the oldest known end is the best guess.
        read_to = self._read[max(older)] if older else min(self._read.values())
        # Two logs with records of one leadership agree up to the end of the shorter part.
        self._parted = max(0, min(read_to, answer.end))
        self._common = answer
        return None

    def _in_present_log(self, end: TermEnd) -> TermEnd | None:
        """Return an end of the former log as it is in the present one; None: unknown.

        It is the same where both logs are the same. Where the former log ended later, the present
        one has nothing but these records up to where they part. If the leader says of a later
        leadership that it ends there, so do they.
        """
        if end.end < self._parted:
            return end
        bounds = [
            a.end for a in self._heard.values() if a.term >= end.term and a.end <= self._parted
        ]
        return TermEnd(end.term, min(bounds)) if bounds else None

    def _next_unheard(self, common: TermEnd) -> int | None:
        """Go down from the present leadership: of which ones since `common` has nothing been heard?

        What is known of former ones counts for what was read. If it is about records behind that,
        which another leader may have replaced, the questions continue until an answer is about what
        was read.
        """
        is_stale = any(end.end >= self._parted for end in self._mark.past if end.term < common.term)
        is_known = not is_stale or any(
            answer.end <= self._parted for answer in self._heard.values()
        )
        term = self._newest
        # Bounded: a flapping leader must not cost a request for each of its leaderships.
        for _ in range(self._steps):
            if term < 0 or (is_known and term <= common.term):
                return None
            # An answer of an older leadership says that there are no records of those in between.
            covering = [a for asked, a in self._heard.items() if a.term <= term <= asked]
            if not covering:
                return term
            term = covering[0].term - 1
        return None
