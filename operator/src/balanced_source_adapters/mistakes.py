"""Names the connector whose code has failed.

The coordinator runs the pure half of a connector beside our own code: in the operator, in local
mode, and in a driver without an operator. Whose mistake an exception is, its traceback tells.

Tasks of Spark import this, so it imports little.
"""

import signal
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import dropwhile, takewhile
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from balanced_source.api import AsyncCall, Source
from balanced_source.errors import (
    BalancedSourceError,
    ConnectorContractError,
    ConnectorError,
    ContractViolationError,
    DiscoveryError,
    EscapingError,
    RefusedDiscoveryError,
    TransientDiscoveryError,
    WrongAnswerError,
    in_short,
    text_of,
)
from balanced_source.reason_kinds import reason_fault
from balanced_source_adapters.lazy_log import get_logger
from balanced_source_adapters.registrations import BUILT_IN, OURS, registered

if TYPE_CHECKING:
    from balanced_source.coordinator import SourceCoordinator

log = get_logger(__name__)

_LIBRARY: Final = "balanced_source"
"""Top-level module of the library, which connectors call and which checks what they bring."""

_ENTRIES: Final = (
    "balanced_source.assigners",
    "balanced_source.connectors",
    "balanced_source.coordinator.context",
    "balanced_source.coordinator.state_codec",
    "balanced_source.coordinator.view",
    "balanced_source.documents.splits",
)
"""Modules of the library that check what a connector brings; others check hosts and documents."""


_logged: Final[dict[tuple[str, str], str]] = {}
"""Connector and method → the mistake that was logged last."""


class _CodePlace(NamedTuple):
    """Where a piece of code is.

    Attributes:
        module: with dots.
        name: of the function.
        kind: of the connector that it belongs to; empty for our code.
    """

    module: str
    name: str
    kind: str

    @property
    def root(self) -> str:
        return self.module.partition(".")[0]


def package_of(kind: str) -> str:
    """Return the package of a connector, with its version, for messages."""
    try:
        return registered().of(kind).package
    except ConnectorError:
        return "an unknown package"


def failed(kind: str, where: str, error: BaseException) -> ConnectorError:
    """Return the sentence about a connector that raised an exception by mistake.

    Args:
        kind: of the connector.
        where: what it was asked, such as a method of the contract.
        error: what it raised.
    """
    return ConnectorError(
        f"connector {kind!r} of {package_of(kind)} failed in {where}: {in_short(error)}."
        f" {_remedy(error)}"
    )


def mistake(kind: str, where: str, error: BaseException) -> ConnectorError:
    """Return the error that a mistake of a connector is, and log the traceback."""
    short = in_short(error)
    # Servers are asked again every few seconds: the same traceback each time would fill the log.
    if _logged.get((kind, where)) != short:
        _logged[kind, where] = short
        log_mistake(kind, error, method=where)
    return failed(kind, where, error)


@contextmanager
def explained(kind: str, where: str) -> Iterator[None]:
    """Turn what is raised by mistake into a `ConnectorError`.

    Errors of this project say what to do themselves. Do not use it around a ``yield``: the caller
    of a generator closes it with an exception, and the connector has done nothing wrong.

    Args:
        kind: of the connector.
        where: what it was asked: a method of the contract.
    """
    try:
        yield
    except BalancedSourceError:
        raise
    # Also a SystemExit, a GeneratorExit, and what a cancelled call of asyncio raises.
    except BaseException as error:
        if is_from_keyboard(error):
            raise
        raise mistake(kind, where, error) from error


def is_from_keyboard(error: BaseException) -> bool:
    """Whether a user may have pressed Ctrl-C.

    Python raises a `KeyboardInterrupt` by itself only in the main thread, and only where nothing
    else handles the signal. Elsewhere the code of a connector has raised it.
    """
    return (
        isinstance(error, KeyboardInterrupt)
        and threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )


def expect(
    found: object,
    kind: type | tuple[type, ...],
    expected: str,
    verb: str = "returned",
    who: str = "it",
) -> None:
    """Check the type of what a connector has returned.

    Args:
        found: what it has returned.
        kind: the type.
        expected: the type in words, such as ``an InputStatus``.
        verb: what the connector did.
        who: did it, such as a method, where the sentence around this does not say so.

    Raises:
        TypeError: it is of another type. Says which one, and what was expected.
    """
    if not isinstance(found, kind):
        raise TypeError(f"{who} {verb} a {type(found).__name__}, and {expected} was expected")


def expect_texts(found: object, expected: str) -> None:
    """Check that a connector has returned a sequence of texts; raises what `expect` does."""
    # A text is a sequence of texts, too.
    if isinstance(found, str):
        raise TypeError(f"it returned a str, and {expected} was expected")
    expect(found, Sequence, expected)
    for text in cast("Sequence[object]", found):
        expect(text, str, "a str", "returned a sequence with")


def broken_contract(kind: str, error: ContractViolationError) -> ConnectorContractError:
    """Return the sentence about a connector that broke its contract."""
    return ConnectorContractError(_breaks(kind, error), is_ours=kind in BUILT_IN)


def discovery_errors(
    coordinator: "SourceCoordinator[Any, Any] | None", *, blocked: bool = False
) -> Mapping[str, Exception]:
    """Return what keeps scopes from being read; wrong answers name the connector.

    Args:
        coordinator: of the source; None while there is none.
        blocked: whether only scopes count that could not be listed at all.
    """
    if coordinator is None:
        return {}
    enumerator, kind = coordinator.enumerator, coordinator.source.kind
    found = enumerator.blocked() if blocked else enumerator.problems()
    return {scope: _with_name(kind, error) for scope, error in found.items()}


def of_connector(
    source: Source[Any, Any] | None, error: BaseException
) -> BalancedSourceError | None:
    """Return an exception as a sentence that names the connector whose mistake it is.

    None if it is not the mistake of an installed package, or says by itself what to do.

    Args:
        source: that was served; None if that is unknown.
        error: as it was raised, with its traceback.
    """
    if isinstance(error, EscapingError) and error.__cause__ is not None:
        error = error.__cause__
    is_broken = isinstance(error, ContractViolationError)
    if isinstance(error, BalancedSourceError) and not is_broken:
        return None
    served = source.kind if source is not None else ""
    places = _places(error, served)
    if not places or not (places[0].kind or places[0].root == _LIBRARY):
        return None
    own = _own_place(places)
    kind = own.kind if own is not None else served
    # Without code of its own in the traceback, it has brought values that ours cannot work with.
    if own is None and (kind in BUILT_IN or kind not in registered().kinds):
        return None
    if isinstance(error, ContractViolationError):
        is_entry = own is not None or places[0].module.startswith(_ENTRIES)
        return broken_contract(kind, error) if is_entry else None
    return failed(kind, own.name if own is not None else "what it brings to the coordinator", error)


@contextmanager
def named(source: Source[Any, Any]) -> Iterator[None]:
    """Raise a connector's mistakes as sentences; see `of_connector`."""
    try:
        yield
    except BaseException as error:
        found = None if is_from_keyboard(error) else of_connector(source, error)
        if found is None:
            raise
        log_mistake(source.kind, error)
        raise found from error


def log_mistake(kind: str, error: BaseException, **details: Any) -> None:
    """Log a connector's mistake with its traceback, for the authors of the connector."""
    # As text: a log that is made for people may show variables, and with them passwords.
    lines = "".join(traceback.format_exception(error))
    log.error("a connector failed", connector=kind, exception=lines, **details)


def call_error(kind: str, call: AsyncCall, error: BaseException) -> Exception:
    """Return what an enumerator gets for a call that failed: an error that says what to do.

    Args:
        kind: of the source.
        call: as the enumerator has made it.
        error: what its execution raised. By mistake: then the sentence names the connector.
    """
    if isinstance(error, BalancedSourceError):
        return error
    # A hybrid source passes calls on to connectors of others.
    own = _own_place(_places(error, kind))
    kind = own.kind if own is not None else kind
    where = f"its executor, which was asked for {type(call).__name__}"
    scope = str(getattr(call, "scope", ""))
    found = TransientDiscoveryError(f"{scope}: {mistake(kind, where, error)}", scope=scope)
    found.__cause__ = error
    return found


def close_coordinator(coordinator: "SourceCoordinator[Any, Any]") -> None:
    """Close a coordinator. An enumerator that fails then is logged: nothing is left to be done."""
    try:
        coordinator.close()
    except BaseException as error:  # noqa: BLE001
        log_mistake(coordinator.source.kind, error)


def _with_name(kind: str, error: Exception) -> Exception:
    # One of ours may be made of others, such as a hybrid source.
    if not kind or kind in BUILT_IN or not isinstance(error, DiscoveryError):
        return error
    if fault := reason_fault(error.reason):
        text = f"{_breaks(kind, error)}; {fault}"
        is_refused = isinstance(error, RefusedDiscoveryError)
        return (RefusedDiscoveryError if is_refused else TransientDiscoveryError)(
            text, scope=error.scope
        )
    if not isinstance(error, WrongAnswerError):
        return error
    return WrongAnswerError(_breaks(kind, error), scope=error.scope, reason=error.reason)


def _breaks(kind: str, error: Exception) -> str:
    return f"connector {kind!r} of {package_of(kind)} breaks its contract: {text_of(error)}"


def _places(error: BaseException, served: str) -> list[_CodePlace]:
    """Return where an exception came from, innermost first: code of connectors, and ours.

    Args:
        error: with its traceback.
        served: kind of the source that was served; empty if that is unknown.
    """
    frames = [
        (str(frame.f_globals.get("__name__", "")), frame.f_code.co_qualname)
        for frame, _ in traceback.walk_tb(error.__traceback__)
    ]
    known = registered()
    places = (
        _CodePlace(module, name, known.kind_of(module, preferred=served) or "")
        for module, name in reversed(frames)
    )
    return [place for place in places if place.kind or place.root in OURS]


def _own_place(places: Sequence[_CodePlace]) -> _CodePlace | None:
    """Return the innermost method of a connector that ours has called, of `_places`.

    What it has called itself says nothing to others.
    """
    own = dropwhile(lambda place: not place.kind, places)
    return next(reversed(list(takewhile(lambda place: place.kind, own))), None)


def _remedy(error: BaseException) -> str:
    report = "eport this to the authors of the package, with the traceback from the log"
    if isinstance(error, OSError):  # also of connections
        return f"Check that what it reads can be reached. If it can, r{report}"
    return f"R{report}"
