"""Keeps records for longer than `SourceOutput.collect` lasts."""

from collections.abc import Callable
from copy import copy
from typing import Any, Final

_IMMUTABLE: Final = (tuple, str, bytes, int, float, complex, frozenset, type(None))


def _same(record: Any) -> Any:
    return record


_keepers: Final[dict[type, Callable[[Any], Any]]] = {}


def kept(record: Any) -> Any:
    """Return a record that its reader cannot change: the same one if its type is immutable.

    Any other record is copied. The copy is shallow: what the record refers to may still change
    until `ReaderOutput.flush`.
    """
    kind = type(record)
    keeper = _keepers.get(kind)
    if keeper is None:
        # By type: it is looked at once per type, and not with each record.
        keeper = _keepers[kind] = _keeper(kind)
    return keeper(record)


def _keeper(kind: type) -> Callable[[Any], Any]:
    if issubclass(kind, memoryview | bytearray):
        return bytes
    parameters = getattr(kind, "__dataclass_params__", None)
    if issubclass(kind, _IMMUTABLE) or (parameters is not None and parameters.frozen):
        return _same
    return copy
