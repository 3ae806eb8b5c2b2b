"""Owner policies.

A new strategy is one module here, one line in `STRATEGIES`, and its name in the CRD's enum.

A policy sees the whole picture (every split, every owner) and nothing else: no clock, no state of
its own.
"""

from collections.abc import Callable
from typing import Final

from balanced_source.assigners._contract import Placement, SplitAssigner, place
from balanced_source.assigners._drift import Drift, DriftWatch, imbalance, minimum_gain
from balanced_source.assigners._hash import HashAssigner, hash_owner, java_string_hash
from balanced_source.assigners._identity import AssignerIdentity, former_identity
from balanced_source.assigners._load_aware import LoadAwareAssigner
from balanced_source.assigners._per_scope import PerScopeAssigner
from balanced_source.assigners._plan import Balance, Layout, Move, Plan, Wish, balance, plan
from balanced_source.assigners._round_robin import RoundRobinAssigner, deal

STRATEGIES: Final[dict[str, Callable[[], SplitAssigner]]] = {
    "RoundRobin": RoundRobinAssigner,
    "Hash": HashAssigner,
    "LoadAware": LoadAwareAssigner,
}
"""Strategies by the name that a user writes in ``spec.assignment.strategy``."""

__all__ = [
    "STRATEGIES",
    "AssignerIdentity",
    "Balance",
    "Drift",
    "DriftWatch",
    "HashAssigner",
    "Layout",
    "LoadAwareAssigner",
    "Move",
    "PerScopeAssigner",
    "Placement",
    "Plan",
    "RoundRobinAssigner",
    "SplitAssigner",
    "Wish",
    "balance",
    "deal",
    "former_identity",
    "hash_owner",
    "imbalance",
    "java_string_hash",
    "minimum_gain",
    "place",
    "plan",
]
