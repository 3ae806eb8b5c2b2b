"""All errors of Balanced Source, one tree.

    BalancedSourceError
    ├── ContractViolationError       a connector, an assigner or we ourselves broke a contract
    │   ├── ConnectorContractError   a connector did; names it
    │   └── EscapingError            it raised what ends a process, a thread or a task
    ├── InvalidSpecError             the user asked for something that cannot be; names the field
    ├── StateError                   what is stored cannot be used as it is
    │   ├── CorruptDocumentError     edited by hand or torn: the digest does not match
    │   ├── IncompatibleVersionError written by a newer version; names both versions
    │   └── StateConflictError       someone else wrote in between: reload, never overwrite
    ├── DiscoveryError               the outside world did not tell which splits there are
    │   ├── TransientDiscoveryError  try again: unreachable, timed out, leader moving
    │   └── RefusedDiscoveryError    trying again does not help: wrong credentials, no such topic
    │       └── WrongAnswerError     a connector has answered with what its contract does not allow
    ├── ConnectorError               a kind of source is not installed, or its package is broken
    ├── JournalError                 the store of a journal is out of reach, or lacks something
    ├── ForeignJournalError          the journal of a Spark checkpoint is not where it should be
    ├── FatalProblemError            a lasting problem ends a query without an operator
    ├── FencedError                  a newer incarnation has taken over: the query ends
    ├── SourceInUseError             another query reads the source: the query ends
    └── ForeignCheckpointError       the Spark checkpoint belongs to another source: the query ends

Adapters raise these *from* the client library's error, which never leaks: it may be replaced one
day. Messages end with what the reader of the message can do. They never hold a secret.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

from balanced_source.reasons import Reason


class BalancedSourceError(Exception):
    """Root of everything that this project raises on purpose."""


class ContractViolationError(BalancedSourceError):
    """A contract of the source framework was broken by code.

    It is neither the user's fault nor the network's.
    """


class EscapingError(ContractViolationError):
    """Code of a connector raised what ends a process, a thread or a task: its cause."""


class ConnectorContractError(ContractViolationError):
    """A connector broke its contract; names connector and package.

    Attributes:
        is_ours: whether it is a connector of this project: a defect.
    """

    def __init__(self, message: str, *, is_ours: bool = False) -> None:
        super().__init__(message)
        self.is_ours = is_ours


class InvalidSpecError(BalancedSourceError):
    """The user's spec cannot be honoured.

    Attributes:
        field: path of the offending field, e.g. ``spec.source.kafka.clusters[0].properties``.
    """

    def __init__(self, message: str, *, field: str = "spec") -> None:
        super().__init__(f"{field}: {message}")
        self.field = field


class StateError(BalancedSourceError):
    """Stored state or a document cannot be used as it is."""


class CorruptDocumentError(StateError):
    """The content does not match its digest, or is not what its kind says."""


class IncompatibleVersionError(StateError):
    """Written by a newer version of this software.

    Attributes:
        found: version found in the bytes.
        supported: highest version that this software reads.
    """

    def __init__(self, what: str, *, found: int, supported: int) -> None:
        super().__init__(
            f"{what} has version {found}, this software reads versions up to {supported}: "
            "upgrade it, or restore an older copy"
        )
        self.found = found
        self.supported = supported


class StateConflictError(StateError):
    """Compare-and-swap failed: the stored revision is not the one that was read."""


class DiscoveryError(BalancedSourceError):
    """Listing splits, or resolving their positions, failed.

    Attributes:
        scope: the part of the source that failed, e.g. the name of a cluster.
        reason: CamelCase word for a condition, stable over releases.
        answers: what was found out all the same, by split: an error of some splits is not one of
            all.
        is_hopeless: whether waiting does not help where nothing else is read, such as for a name
            that does not exist. A query without an operator ends with this error then.
        is_fatal: whether a query without an operator ends with this error, although it has splits:
            records are lost, and the user has not agreed.
    """

    def __init__(
        self,
        message: str,
        *,
        scope: str = "",
        reason: str = Reason.DISCOVERY_FAILED,
        answers: Mapping[Any, Any] = MappingProxyType({}),
        is_hopeless: bool = False,
        is_fatal: bool = False,
    ) -> None:
        super().__init__(message)
        self.scope = scope
        self.reason = reason
        self.answers = answers
        self.is_hopeless = is_hopeless
        self.is_fatal = is_fatal


class TransientDiscoveryError(DiscoveryError):
    """Worth trying again without anybody acting."""


class RefusedDiscoveryError(DiscoveryError):
    """Someone has to act first (credentials, a missing topic); retried slowly all the same."""


class WrongAnswerError(RefusedDiscoveryError):
    """A connector has answered a call of its enumerator with what the contract does not allow."""


class ConnectorError(BalancedSourceError):
    """No usable connector of a kind is installed; names the package to add or to replace.

    Attributes:
        field: path of what the user wrote for the connector; empty where there is no spec.
    """

    def __init__(self, message: str, *, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class JournalError(BalancedSourceError):
    """The store of a journal cannot be reached, or does not offer what a journal needs."""


class ForeignJournalError(BalancedSourceError):
    """The journal of a Spark checkpoint is not where the query looks for it: the query ends."""


class FatalProblemError(BalancedSourceError):
    """A problem that waiting does not solve. Ends a query that has no operator to report it.

    Attributes:
        reason: CamelCase word of the problem.
    """

    def __init__(self, message: str, *, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


class FencedError(BalancedSourceError):
    """A newer incarnation of this reader host has taken over. It never passes: the query ends."""


class SourceInUseError(BalancedSourceError):
    """Another query reads the source and continues reporting."""


class ForeignCheckpointError(BalancedSourceError):
    """The Spark checkpoint was written by a query of another source."""


def in_short(error: BaseException) -> str:
    """Return type and text of an error on one line, for the middle of a sentence."""
    text = _text(error).removesuffix(".")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def text_of(error: BaseException) -> str:
    """Return the text of an error on one line; the name of its type if it has none."""
    return _text(error) or type(error).__name__


def _text(error: BaseException) -> str:
    """Return the text of an error on one line, even if its text cannot be made."""
    try:
        return " ".join((_findings(error) or str(error)).split())
    except Exception:  # noqa: BLE001 - code of others, which must not break what explains it
        return "(its text cannot be shown)"


def _findings(error: BaseException) -> str:
    """Return what a model of pydantic finds wrong; empty for other errors.

    Its own text has several lines, and shows values, which may be secret.
    """
    if not type(error).__module__.startswith("pydantic") or not hasattr(error, "errors"):
        return ""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    return "; ".join(": ".join((".".join(map(str, each["loc"])), each["msg"])) for each in found)


def contained(error: BaseException) -> Exception:
    """Return an error that ends no process: code of connectors may try to end ours.

    Event loops pass on what is no `Exception`, and with it end for all sources.
    """
    # Futures refuse StopIteration.
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    wrapped = EscapingError(f"it raised what no code may: {in_short(error)}")
    wrapped.__cause__ = error
    # Whose code it was, its traceback tells.
    return wrapped.with_traceback(error.__traceback__)


@contextmanager
def containing() -> Iterator[None]:
    """Raise what would end a process, a thread or a task as an ordinary exception.

    For code of connectors that awaits nothing. Only an `await` cancels a task, so no cancellation
    of ours is caught.
    """
    try:
        yield
    except Exception:
        raise
    except BaseException as error:
        raise contained(error) from error
