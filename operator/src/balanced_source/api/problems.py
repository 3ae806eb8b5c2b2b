"""Problems: how every part of the product says that something lasts and needs attention.

One value serves all outlets. The operator turns it into a condition and an event, a driver puts it
into its report, and a query without an operator logs it and, if it is fatal, raises it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from balanced_source.errors import DiscoveryError, text_of
from balanced_source.names import as_unicode
from balanced_source.reasons import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """States one thing that is wrong and lasts.

    Attributes:
        reason: CamelCase word for programs; stable over releases.
        message: what happened, to which object (with its value), and what to do. Never holds a
            secret.
        scope: the part of the source that is affected, such as the name of a cluster; empty for the
            whole source.
        is_fatal: whether waiting does not help. Without an operator, a fatal problem ends the
            query.
        is_hopeless: whether waiting does not help where nothing else is read; see `DiscoveryError`.
            Not part of documents: only a query without an operator asks.
    """

    reason: str
    message: str
    scope: str = ""
    is_fatal: bool = False
    is_hopeless: bool = False

    def __post_init__(self) -> None:
        """Make texts writable: they quote names of others, and go into documents and conditions."""
        object.__setattr__(self, "message", as_unicode(self.message))
        object.__setattr__(self, "scope", as_unicode(self.scope))


ProblemKey: TypeAlias = str | tuple[str, ...]
"""What identifies a problem while its message changes, such as ``("topic", "main", "orders")``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemChange:
    """States what changed on a board.

    Attributes:
        key: of the problem.
        before: the problem until now; None if there was none.
        after: the problem from now on; None if it is resolved.
    """

    key: ProblemKey
    before: Problem | None
    after: Problem | None


ProblemListener = Callable[[ProblemChange], None]
"""Called once for each change, after it has happened."""


def _ignore(change: ProblemChange) -> None:
    del change


class ProblemBoard:
    """Holds the current problems by key. Not thread-safe.

    Args:
        listener: is told about each change. Setting an equal problem again is no change.
    """

    def __init__(self, listener: ProblemListener = _ignore) -> None:
        self._listener = listener
        self._problems: dict[ProblemKey, Problem] = {}

    def raise_(self, key: ProblemKey, problem: Problem) -> None:
        """Set the problem for `key`."""
        before = self._problems.get(key)
        self._problems[key] = problem
        if problem != before:
            self._listener(ProblemChange(key=key, before=before, after=problem))

    def clear(self, key: ProblemKey) -> None:
        """Remove the problem for `key`, if there is one."""
        before = self._problems.pop(key, None)
        if before is not None:
            self._listener(ProblemChange(key=key, before=before, after=None))

    def set(self, key: ProblemKey, problem: Problem | None) -> None:
        """Set the problem for `key`, or remove it when `problem` is None."""
        if problem is None:
            self.clear(key)
        else:
            self.raise_(key, problem)

    def replace(self, group: str, problems: Mapping[ProblemKey, Problem]) -> None:
        """Make `problems` the only ones whose key begins with `group`, which is put before it."""
        wanted = {(group, *_path(key)): problem for key, problem in problems.items()}
        for key in [
            key for key in self._problems if _path(key)[0] == group and _path(key) not in wanted
        ]:
            self.clear(key)
        for key, problem in wanted.items():
            self.raise_(key, problem)

    def get(self, key: ProblemKey) -> Problem | None:
        """Return the problem for `key`; None if there is none."""
        return self._problems.get(key)

    def __iter__(self) -> Iterator[Problem]:
        """Iterate over the problems, in the order of `by_key`."""
        return iter(self.by_key().values())

    def by_key(self) -> dict[tuple[str, ...], Problem]:
        """Return the problems with their keys, each as a tuple.

        Fatal ones first, then by key, whatever the order they were set in.
        """
        paths = {_path(key): problem for key, problem in self._problems.items()}
        return dict(sorted(paths.items(), key=lambda item: (not item[1].is_fatal, item[0])))

    def __len__(self) -> int:
        return len(self._problems)


def discovery_problem(error: Exception, *, scope: str, is_fatal: bool = False) -> Problem:
    """Return the problem that an error of discovery is.

    Args:
        error: what discovery, or the look-up of start offsets, failed with.
        scope: the part of the source that failed, such as a cluster.
        is_fatal: see `Problem`; the error may say so, too.
    """
    reason = error.reason if isinstance(error, DiscoveryError) else Reason.DISCOVERY_FAILED
    is_hopeless = isinstance(error, DiscoveryError) and error.is_hopeless
    is_loss = isinstance(error, DiscoveryError) and error.is_fatal
    return Problem(
        reason=reason,
        message=text_of(error),
        scope=scope,
        is_fatal=is_fatal or is_loss,
        is_hopeless=is_hopeless,
    )


def fatal_problem(problems: Iterable[Problem]) -> Problem | None:
    """Return the first fatal problem; None if there is none."""
    return next((problem for problem in problems if problem.is_fatal), None)


def _path(key: ProblemKey) -> tuple[str, ...]:
    return key if isinstance(key, tuple) else (key,)
