"""What must survive the process that runs a hybrid source's enumerator."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from balanced_source.api import SplitId, SwitchPosition
from balanced_source.connectors.hybrid.looks import Looks
from balanced_source.connectors.hybrid.values import HybridSplit


@dataclass(frozen=True, slots=True, kw_only=True)
class HybridState:
    """What must survive the process.

    Attributes:
        part: name of the part that is read.
        state: of its enumerator.
        position: what the former part has measured.
        leftovers: splits of former parts that no one has, and that are not read to their end: a
            Spark checkpoint that is older than the state brought them back.
        kept: splits that were read last, which Spark's checkpoint names until others are given out.
        looks: what names in later parts stood for at the beginning.
    """

    part: str
    state: Any
    position: SwitchPosition = field(default_factory=SwitchPosition)
    leftovers: Mapping[SplitId, HybridSplit] = field(default_factory=dict)
    kept: frozenset[SplitId] = frozenset()
    looks: Looks = field(default_factory=Looks)
