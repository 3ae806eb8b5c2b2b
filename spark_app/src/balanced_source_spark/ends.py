"""How far each split could be read now: what the brokers say, asked often but never waited for in vain."""

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Final

import structlog

from balanced_source.api import SplitId
from balanced_source.errors import DiscoveryError

FRESH: Final = 0.02
"""Seconds for which an answer is good enough: an idle query with trigger 0 asks a hundred times a second."""

PATIENCE: Final = 2.0
"""Seconds to wait for a cluster that answered last time; one that did not is not waited for."""

RETRY: Final = 0.5
"""Seconds until a cluster that did not answer is asked again."""

COMPLAIN_AFTER: Final = 60.0
"""Seconds between two complaints about the same cluster."""

log = structlog.get_logger(__name__)

EndsOfScope = Callable[[str, Iterable[SplitId]], Mapping[SplitId, int]]
"""Asks one cluster; blocking. Raises DiscoveryError."""


class Ends:
    """Last known ends of all splits, per cluster. Used by one thread.

    Args:
        ask: one cluster.
        retry: see `RETRY`.
        patience: see `PATIENCE`.
        fresh: see `FRESH`.
    """

    def __init__(
        self, ask: EndsOfScope, *, retry: float = RETRY, patience: float = PATIENCE, fresh: float = FRESH
    ) -> None:
        self._ask = ask
        self._fresh = fresh
        self._retry = retry
        self._patience = patience
        self._pool = ThreadPoolExecutor(thread_name_prefix="bsrc-ends")
        self._pending: dict[str, Future[Mapping[SplitId, int]]] = {}
        self._answered: dict[str, float] = {}
        self._known: dict[SplitId, int] = {}
        self._complained: dict[str, tuple[str, float]] = {}
        self._failed: dict[str, float] = {}

    @property
    def silent(self) -> frozenset[str]:
        """Clusters that did not answer when they were asked last.

        What is known of them is old: a micro-batch with records of theirs would wait for their return, and everything
        else with it.
        """
        return frozenset(self._failed.keys() | self._pending.keys())

    def get(self, split_ids: Iterable[SplitId]) -> Mapping[SplitId, int]:
        """Ends as known now, for the splits for which any is known."""
        scopes: dict[str, list[SplitId]] = {}
        for split_id in split_ids:
            scopes.setdefault(str(split_id[0]), []).append(split_id)
        due = {scope: members for scope, members in scopes.items() if self._is_due(scope, members)}
        asked = {scope: self._pool.submit(self._ask, scope, members) for scope, members in due.items()}
        self._pending |= asked
        wait([future for scope, future in asked.items() if scope not in self._failed], timeout=self._patience)
        self._collect()
        return self._known

    def _is_due(self, scope: str, members: Collection[SplitId]) -> bool:
        now = time.monotonic()
        if scope in self._pending:
            return False
        if scope in self._failed:
            return now - self._failed[scope] >= self._retry
        is_fresh = now - self._answered.get(scope, -self._fresh) < self._fresh
        return not (is_fresh and all(s in self._known for s in members))

    def get_all(self, split_ids: Collection[SplitId], *, timeout: float) -> Mapping[SplitId, int]:
        """Ends of all these splits, waited for: a query that ends by itself must not end with less than was there.

        Raises:
            DiscoveryError: a cluster did not answer within `timeout` seconds.
        """
        deadline = time.monotonic() + timeout
        while missing := [s for s in split_ids if s not in self.get(split_ids)]:
            if time.monotonic() > deadline:
                raise DiscoveryError(
                    f"ends of {len(missing)} splits unknown after {timeout:.0f} s, e.g. {missing[0]}: is the "
                    "cluster reachable?"
                )
            time.sleep(FRESH)  # a refusal comes at once
        return self._known

    def close(self) -> None:
        """End the worker threads."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _collect(self) -> None:
        for scope, future in list(self._pending.items()):
            if not future.done():
                continue
            del self._pending[scope]
            try:
                self._known.update(future.result())
                self._answered[scope] = time.monotonic()
                self._complained.pop(scope, None)
                self._failed.pop(scope, None)
            except DiscoveryError as error:
                self._failed[scope] = time.monotonic()
                self._complain(scope, error)

    def _complain(self, scope: str, error: DiscoveryError) -> None:
        """Once for each reason, then once a minute: this is asked several times a second."""
        now = time.monotonic()
        reason, at = self._complained.get(scope, ("", -COMPLAIN_AFTER))
        if error.reason != reason or now - at >= COMPLAIN_AFTER:
            self._complained[scope] = error.reason, now
            log.warning("ends unknown for now; other clusters go on", cluster=scope, error=str(error))
