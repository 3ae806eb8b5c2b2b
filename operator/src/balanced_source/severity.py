"""How bad problems are, by their reasons, and which of them mean that records are missing."""

from typing import Final

from balanced_source.reason_kinds import ReasonKind, loaded_reasons
from balanced_source.reasons import Reason

_SEVERITY: Final = {
    reason.value: number
    for number, reason in enumerate(r for r in Reason if r.kind is ReasonKind.OPERATION)
}
_OF_OTHERS: Final = _SEVERITY[Reason.DISCOVERY_FAILED.value]

CHECKPOINT_REASONS: Final = frozenset({Reason.CHECKPOINT_LOST.value, Reason.CHECKPOINT_OLDER.value})
"""Reasons of problems about Spark checkpoints that were lost or are older copies.

Records are delivered again in micro-batches with other numbers, and a sink that recognises
micro-batches by their number may skip new records.
"""


def is_loss(reason: str) -> bool:
    """Return whether the sink lacks records after a problem, or may lack some.

    Reading continues unless the problem is fatal. Connectors have reasons of their own, which are
    known as soon as their operator half is loaded.
    """
    return reason in CHECKPOINT_REASONS or any(
        word.kind is ReasonKind.LOSS and word == reason for word in loaded_reasons()
    )


def severity(reason: str) -> int:
    """Return the rank of a problem's reason; the worst has the lowest.

    Unknown ones rank with failed discovery.
    """
    return _SEVERITY.get(reason, _OF_OTHERS)
