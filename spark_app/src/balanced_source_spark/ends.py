"""How far each split could be read now.

What the servers say, asked often but never waited for in vain.
"""

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Final

from balanced_source.api import Problem, SplitId
from balanced_source.errors import DiscoveryError, TransientDiscoveryError, text_of
from balanced_source.host.ends import SplitEnd
from balanced_source.names import counted, split_name

FRESH: Final = 0.02
"""Seconds for which an answer is good enough: an idle query with trigger 0 asks a hundred times a
second."""

PATIENCE: Final = 2.0
"""Seconds to wait for a cluster that answered last time; one that did not is not waited for."""

RETRY: Final = 0.5
"""Seconds until a cluster that did not answer is asked again."""

LASTS: Final = 5.0
"""Seconds of silence after which people are told: a leader that moves is no problem."""

TELL_EVERY: Final = 60.0
"""Seconds after which the text of a problem is renewed: it names partitions, which may be others by
then."""

GONE: Final = 10.0
"""Seconds for which a cluster has to leave a split out of its answers until the split counts as
deleted.

Servers learn of splits one after another.
"""

EndsOfScope = Callable[[str, Iterable[SplitId]], Mapping[SplitId, SplitEnd]]
"""Asks one cluster; blocking.

Raises DiscoveryError, with the ends of those splits that have answered.
"""

ScopeOf = Callable[[SplitId], str]
"""Returns the cluster of a split."""

Tell = Callable[[str, Problem | None], None]
"""Sets the problem of a cluster, or clears it."""

HANGS: Final = 30.0
"""Seconds after which a question without an answer is told of.

Clients of servers give up earlier, and say more.
"""

FORGET: Final = 2
"""Ends that are remembered, as a multiple of the splits that are asked for: removed splits are
forgotten."""


MOST_SCOPES: Final = 1_000
"""Clusters that can be asked at the same time. One that is silent holds its thread for seconds, and
no other one may wait for that thread. As many threads are made as are needed."""


def first_member(split_id: SplitId) -> str:
    """Return the cluster of a split as most connectors name it."""
    return str(split_id[0])


_NO_ANSWER: Final = "check that the servers of the source answer, then start the query again"


class Ends:
    """Last known ends of all splits, per cluster. Used by one thread at a time.

    Args:
        ask: one cluster.
        retry: see `RETRY`.
        patience: see `PATIENCE`.
        fresh: see `FRESH`.
        tell: is told of clusters that have been silent, in part or as a whole, for `lasts` seconds.
        lasts: see `LASTS`.
        gone: see `GONE`.
        hangs: see `HANGS`.
        scope_of: the cluster of a split.
    """

    def __init__(
        self,
        ask: EndsOfScope,
        *,
        retry: float = RETRY,
        patience: float = PATIENCE,
        fresh: float = FRESH,
        tell: Tell = lambda *_: None,
        lasts: float = LASTS,
        gone: float = GONE,
        hangs: float = HANGS,
        scope_of: ScopeOf = first_member,
    ) -> None:
        self._ask = ask
        self._scope_of = scope_of
        self._tell = tell
        self._lasts = lasts
        self._gone = gone
        self._hangs = hangs
        self._asked: dict[str, float] = {}
        self._absent: dict[SplitId, float] = {}
        self._fresh = fresh
        self._retry = retry
        self._patience = patience
        self._pool = ThreadPoolExecutor(MOST_SCOPES, thread_name_prefix="bsrc-ends")
        self._members: Mapping[str, Collection[SplitId]] = {}
        self._listed: list[SplitId] = []
        self._pending: dict[
            str, tuple[Collection[SplitId], Future[Mapping[SplitId, SplitEnd]]]
        ] = {}
        self._answered: dict[str, float] = {}
        self._known: dict[SplitId, SplitEnd] = {}
        self._unanswered: dict[str, frozenset[SplitId]] = {}
        self._failed: dict[str, float] = {}
        self._troubled: dict[str, float] = {}
        self._reported: dict[str, tuple[str, float]] = {}
        self._errors: dict[str, str] = {}

    @property
    def silent(self) -> frozenset[SplitId]:
        """Splits that did not answer when they were asked last.

        Their ends and their lag are unknown now.

        What is known of them is old: a micro-batch with records of theirs would wait for their
        return, and everything else with it.
        """
        # As a rule all have answered.
        if not (self._failed or self._pending or any(self._unanswered.values())):
            return frozenset()
        silent = self._failed.keys() | self._pending.keys()
        whole = (self._members[scope] for scope in silent if scope in self._members)
        parts = (splits for scope, splits in self._unanswered.items() if scope not in silent)
        return frozenset().union(*whole, *parts)

    @property
    def known(self) -> Mapping[SplitId, SplitEnd]:
        """What was heard last, also of splits that are gone; no question is asked."""
        return self._known

    @property
    def mute(self) -> frozenset[SplitId]:
        """Those of `silent` that may exist: their cluster has not just answered without them."""
        return self.silent - self._absent.keys()

    @property
    def deleted(self) -> frozenset[SplitId]:
        """Splits that do not exist any more.

        Their cluster answers, and has left them out for a while.
        """
        now = time.monotonic()
        return frozenset(s for s, since in self._absent.items() if now - since >= self._gone)

    def get(
        self, split_ids: Iterable[SplitId], *, patience: float | None = None
    ) -> Mapping[SplitId, SplitEnd]:
        """Ends as last heard, for the splits for which any is known.

        Those of `silent` ones are old.

        Args:
            split_ids: all splits of the source.
            patience: seconds to wait for answers this time; as set up if None.
        """
        scopes = self._by_scope(list(split_ids))
        self._members = scopes
        due = {scope: members for scope, members in scopes.items() if self._is_due(scope, members)}
        asked = {
            scope: (members, self._pool.submit(self._ask, scope, members))
            for scope, members in due.items()
        }
        self._pending |= asked
        now = time.monotonic()
        self._asked |= dict.fromkeys(asked, now)
        for scope in self._pending.keys() & scopes.keys():
            self._asked.setdefault(scope, now)  # it was taken out, and is back
        # Only those that answered last time: a dead cluster must not cost its patience at each
        # look.
        self._wait(
            [future for scope, (_, future) in asked.items() if scope not in self._failed],
            self._patience if patience is None else patience,
        )
        self._collect()
        self._forget()
        return self._known

    def _wait(self, futures: Iterable[Future[Mapping[SplitId, SplitEnd]]], patience: float) -> None:
        """Wait for all of these, at most for the patience.

        In turn: mostly there is one, and a wait for several at once costs more.
        """
        deadline = time.monotonic() + patience
        for future in futures:
            with suppress(TimeoutError):
                future.exception(max(0.0, deadline - time.monotonic()))

    def _by_scope(self, split_ids: list[SplitId]) -> Mapping[str, Collection[SplitId]]:
        if split_ids == self._listed:
            return self._members
        scopes: dict[str, list[SplitId]] = {}
        for split_id in split_ids:
            scopes.setdefault(self._scope_of(split_id), []).append(split_id)
        self._listed = split_ids
        return scopes

    def _is_due(self, scope: str, members: Collection[SplitId]) -> bool:
        now = time.monotonic()
        # One question at a time: a second one would only queue up behind it.
        if scope in self._pending:
            return False
        if scope in self._failed:
            return now - self._failed[scope] >= self._retry
        is_fresh = now - self._answered.get(scope, -self._fresh) < self._fresh
        silent = self._unanswered.get(scope, frozenset())
        # A split that was just assigned is asked for at once, however fresh the other answers are.
        return not (is_fresh and all(s in self._known or s in silent for s in members))

    def _forget(self) -> None:
        """Forget splits and clusters that are not asked for any more."""
        count = sum(map(len, self._members.values()))
        if len(self._known) > FORGET * count:
            self._known = {
                s: self._known[s]
                for members in self._members.values()
                for s in members
                if s in self._known
            }
        seen = self._asked.keys() | self._failed.keys() | self._unanswered.keys()
        if not (gone := seen - self._members.keys()):
            return
        for scope in gone:
            self._resolve(scope)
            for table in (self._asked, self._failed, self._unanswered, self._answered):
                table.pop(scope, None)
        self._absent = {
            s: since for s, since in self._absent.items() if self._scope_of(s) not in gone
        }

    def get_all(
        self, split_ids: Collection[SplitId], *, timeout: float
    ) -> Mapping[SplitId, SplitEnd]:
        """Ends of all these splits that exist, waited for.

        A query that ends by itself must not end with less than was there.

        Raises:
            DiscoveryError: a cluster did not answer within `timeout` seconds.
        """
        deadline = time.monotonic() + timeout
        # A split that does not exist any more would be waited for in vain, now and at each start.
        while missing := self._missing(split_ids):
            if time.monotonic() > deadline:
                why = self._errors.get(self._scope_of(missing[0]), _NO_ANSWER)
                raise DiscoveryError(
                    f"ends of {counted(len(missing), 'split')}, such as {split_name(missing[0])},"
                    f" are unknown after {timeout:.0f} s: {why}"
                )
            time.sleep(FRESH)  # a refusal comes at once
        return self._known

    def _missing(self, split_ids: Collection[SplitId]) -> list[SplitId]:
        known, deleted = self.get(split_ids), self.deleted
        return [s for s in split_ids if s not in known and s not in deleted]

    def close(self) -> None:
        """End the worker threads."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _collect(self) -> None:
        for scope, (members, future) in list(self._pending.items()):
            if not future.done():
                self._note_pending(scope)
                continue
            del self._pending[scope]
            try:
                answers = future.result()
                self._note(scope, members, answers)
                # Only after an answer without an error: else what is missing may just be silent.
                self._note_absent(scope, [s for s in members if s not in answers])
                self._resolve(scope)
            except DiscoveryError as error:
                if error.answers:
                    self._note(scope, members, error.answers)
                else:
                    self._failed[scope] = time.monotonic()
                self._trouble(scope, error)

    def _note_pending(self, scope: str) -> None:
        """Tell of a question that is never answered: it raises nothing that could be told."""
        if (asked := self._asked.get(scope)) is None:
            return  # taken out of the source meanwhile
        waited = time.monotonic() - asked
        if waited >= self._hangs:
            error = TransientDiscoveryError(
                f"{scope or 'the source'}: the question where its splits end has no answer for"
                f" {waited:.0f} s, so nothing new is read of it. Check that its servers can be"
                " reached; if they can, report this to the authors of the connector",
                scope=scope,
            )
            self._trouble(scope, error)

    def _note(
        self, scope: str, members: Collection[SplitId], answers: Mapping[SplitId, SplitEnd]
    ) -> None:
        self._known.update(answers)
        self._unanswered[scope] = frozenset(s for s in members if s not in answers)
        self._answered[scope] = time.monotonic()
        self._failed.pop(scope, None)

    def _note_absent(self, scope: str, absent: Collection[SplitId]) -> None:
        """A cluster has answered without an error: what it left out does not exist now."""
        now = time.monotonic()
        others = {s: since for s, since in self._absent.items() if self._scope_of(s) != scope}
        self._absent = {**others, **{s: self._absent.get(s, now) for s in absent}}

    def _trouble(self, scope: str, error: DiscoveryError) -> None:
        """Tell people of what lasts: once for each reason, then once a minute.

        This runs several times a second.
        """
        now = time.monotonic()
        self._errors[scope] = text = text_of(error)
        reason, at = self._reported.get(scope, ("", -TELL_EVERY))
        is_news = error.reason != reason or now - at >= TELL_EVERY
        if is_news and now - self._troubled.setdefault(scope, now) >= self._lasts:
            self._reported[scope] = error.reason, now
            self._tell(scope, Problem(reason=error.reason, message=text, scope=scope))

    def _resolve(self, scope: str) -> None:
        self._errors.pop(scope, None)
        self._troubled.pop(scope, None)
        if self._reported.pop(scope, None) is not None:
            self._tell(scope, None)
