"""Flink's default owner function, byte for byte, for users who need equal owners on both systems.

``start = ((h(topic) * 31) & 0x7FFFFFFF) mod n; owner = (start + partition) mod n`` with Java's
``String.hashCode``. It balances badly with several topics, and collapses when n is a multiple of
31, because then the factor 31 leaves only the sign to decide: prefer `RoundRobinAssigner`.
"""

import functools
from dataclasses import dataclass
from typing import Final

from balanced_source.api import Problem, SplitId
from balanced_source.assigners._contract import Placement, SplitAssigner
from balanced_source.assigners._identity import AssignerIdentity
from balanced_source.reasons import Reason

_FACTOR: Final = 31


@functools.lru_cache(maxsize=65536)
def java_string_hash(text: str) -> int:
    """Java's ``String.hashCode``: over UTF-16 code units, wrapped to signed 32 bit."""
    value = 0
    # Java counts UTF-16 code units: a character beyond the first plane is two of them.
    units = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (value * 31 + (high << 8 | low)) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def hash_owner(split_id: SplitId, parallelism: int) -> int:
    """Owner of a split named (…, topic, partition).

    An id without a number at its end counts as partition 0.
    """
    *names, last = split_id
    partition, names = (last, names) if isinstance(last, int) else (0, [*names, last])
    topic = str(names[-1]) if names else ""
    # Flink's owner function, byte for byte, also where it is uneven: owners are equal there and
    # here.
    start = (java_string_hash(topic) * _FACTOR) & 0x7FFFFFFF
    return (start + partition) % parallelism


@dataclass(frozen=True)
class HashAssigner(SplitAssigner):
    """Owner by hash of the topic plus the partition: a pure function of (split, parallelism)."""

    @property
    def identity(self) -> AssignerIdentity:
        return AssignerIdentity(name="Hash")

    def place(self, placement: Placement) -> dict[SplitId, int]:
        """Return the hash owner of each split; of owned splits only if they may move."""
        n = placement.parallelism
        changes = {split_id: hash_owner(split_id, n) for split_id in placement.pending}
        if placement.may_move:
            for split_id, owner in placement.owners.items():
                if (wanted := hash_owner(split_id, n)) != owner:
                    changes[split_id] = wanted
        return changes

    def warning(self, parallelism: int) -> Problem | None:
        """Multiples of 31 put nearly all topics on one reader."""
        if parallelism % _FACTOR:
            return None
        message = (
            f"strategy Hash collapses at parallelism {parallelism} (a multiple of 31): nearly every"
            " topic starts at one reader; use RoundRobin, or another parallelism"
        )
        return Problem(reason=Reason.HASH_COLLAPSES, message=message)
