"""``spec.source``: what is read.

Each connector of this project has a branch; all others share `custom`.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from balanced_source_operator.contract.choice import SourceChoice, built_in_halves, choice_of
from balanced_source_operator.contract.half import OperatorHalf

BRANCHES: Final[Mapping[str, OperatorHalf[Any]]] = built_in_halves()
"""Operator halves of the connectors that the CRD has a branch for: those of this project that have
one."""

if TYPE_CHECKING:
    Source = SourceChoice
else:
    Source = choice_of(BRANCHES)
