"""Owner tables of splits on clusters called NAME-NUMBER, as people read them.

``0/3 1/0`` for each reader.
"""

from collections import Counter
from collections.abc import Mapping

from balanced_source.api import SplitId


def rows(owners: Mapping[SplitId, int], parallelism: int) -> tuple[str, ...]:
    """One text per reader: its splits as ``cluster number/partition``, sorted."""
    return tuple(
        " ".join(
            f"{str(s[0]).rpartition('-')[2]}/{s[2]}" for s in sorted(owners) if owners[s] == reader
        )
        for reader in range(parallelism)
    )


def imbalance(owners: Mapping[SplitId, int], parallelism: int) -> int:
    """Splits of the fullest reader, less those of the emptiest."""
    counts = Counter(owners.values())
    loads = [counts[reader] for reader in range(parallelism)]
    return max(loads) - min(loads)
