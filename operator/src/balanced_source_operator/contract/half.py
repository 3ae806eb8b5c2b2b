"""The operator half of a connector.

Its branch of the CRD, and the way from a spec to a source of the library.

A connector names its half in `Connector.operator`. The half may import pydantic; it imports no
client.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Generic, NamedTuple, TypeAlias, TypeVar

from pydantic import BaseModel

from balanced_source.api import Problem, RebalancePolicy, SecretReader, Source, SplitId
from balanced_source.assigners import SplitAssigner
from balanced_source.errors import InvalidSpecError
from balanced_source_adapters.connectors import ConnectorPart, Connectors, installed

SpecT = TypeVar("SpecT", bound=BaseModel)


class TextReference(NamedTuple):
    """A key of a ConfigMap in the namespace of the source.

    In local mode: a file `key` in a folder `name`.
    """

    name: str
    key: str


Texts: TypeAlias = Mapping[TextReference, str | None]
"""Texts that a spec refers to; None for one that does not exist."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Common:
    """What a user chooses for a source of any kind.

    Attributes:
        assigner: picks the owners of splits.
        rebalance_policy: when splits may move.
    """

    assigner: SplitAssigner
    rebalance_policy: RebalancePolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class Losses:
    """What a source has lost since its drivers started, as they have counted it.

    Attributes:
        records: how many records were not delivered, as far as that is known; None: it is unknown
            whether any were not.
        gaps: how often records of an unknown number were not delivered.
        problems: the same in sentences, for the condition `DataLoss`. Their reasons are of
            `ReasonKind.LOSS`.
        doubts: what may be lost, too, in such sentences. The condition is Unknown while nothing is
            known to be lost.
    """

    records: int | None = 0
    gaps: int = 0
    problems: tuple[Problem, ...] = ()
    doubts: tuple[Problem, ...] = ()


NO_LOSSES: Final = Losses()

UNKNOWN_LOSSES: Final = Losses(records=None)
"""What a connector that fails says."""


class OperatorHalf(ABC, Generic[SpecT]):
    """What the operator, local mode and the dry run ask of one kind of source. Stateless."""

    spec: type[SpecT]
    """Model of the branch ``spec.source.<kind>``."""

    description: ClassVar[str]
    """Description of the branch: what a source of this kind reads."""

    words: ClassVar[Mapping[str, str]] = {}
    """Pattern of names in `spec` → what it asks for, for messages."""

    can_have_hosts: ClassVar[bool] = True
    """Whether several applications may read a source of this kind together
    (``spec.application.hosts``)."""

    can_be_part: ClassVar[bool] = True
    """Whether a source of this kind may be a part of a hybrid one (``spec.source.hybrid``): its
    Spark half reads ranges."""

    awaits_end: ClassVar[bool] = False
    """Whether a query that ends by itself (trigger ``availableNow``) ends with the source only,
    because its readers ask for splits. It is refused for a source without an end."""

    columns: ClassVar[tuple[str, ...] | None] = None
    """Names of the columns that ``spec.application.pipeline.columns`` can choose from; empty: none
    can be chosen. None: they depend on the spec, and the driver checks them."""

    row_fields: ClassVar[frozenset[str]] = frozenset()
    """Fields of ``spec.application.pipeline`` that only some kinds of source have, and that this
    one has. They choose what its rows hold, and become options of ``format("balanced")`` with the
    same name."""

    def columns_rules(self, kind: str) -> tuple[str, ...]:
        """Return the CRD's rule for the whole spec that lets no other columns be chosen.

        None if they depend on it.
        """
        if self.columns is None:
            return ()
        known = ", ".join(f"'{name}'" for name in self.columns)
        chosen = "self.application.pipeline.columns"
        absent = f"!has(self.source.{kind}) || !has(self.application.pipeline) || !has({chosen})"
        return (f"{absent} || {chosen}.all(c, c in [{known}])",)

    def texts(self, spec: SpecT) -> tuple[TextReference, ...]:
        """Return the texts outside the resource that the spec refers to."""
        return ()

    @abstractmethod
    def to_source(
        self, spec: SpecT, common: Common, texts: Texts, *, field: str
    ) -> Source[Any, Any]:
        """Return the source that the user asks for.

        Args:
            spec: the branch.
            common: what does not depend on the kind.
            texts: those that `texts` names. Their authors may be others than the author of the
                spec.
            field: path of the branch, for messages.

        Raises:
            InvalidSpecError: the spec is invalid in a way that the CRD's rules could not check.
                Names the field.
        """

    def reader_options(self, spec: SpecT) -> Mapping[str, str]:
        """Return options of ``format("balanced")`` for the packaged application.

        What it must know before it starts.

        The rows have columns before there is an assignment. What can change while the source lives
        belongs in `Source.reader_settings` instead. Nothing secret.
        """
        del spec
        return {}

    def part_options(self, spec: SpecT) -> Mapping[str, str]:
        """Return the same for a source that is a part of a hybrid one.

        All parts have the same columns: a kind of source that adds columns of its own adds none
        here, unless the user asks for them. Like `reader_options` by default.
        """
        return self.reader_options(spec)

    def infer_schema(self, spec: SpecT, secrets: SecretReader, *, field: str) -> str:
        """Return the columns of what the source reads, as DDL.

        Blocking; this process reads some of it.

        Args:
            spec: the branch.
            secrets: resolves the Secrets that it names.
            field: path of the branch, for messages.

        Raises:
            InvalidSpecError: sources of this kind have no schema, as by default.
            DiscoveryError: what the source reads cannot be read here, or tells no schema.
        """
        raise InvalidSpecError(
            "a source of this kind has no schema that could be inferred", field=field
        )

    def check_change(
        self, before: Source[Any, Any], after: Source[Any, Any], *, field: str
    ) -> None:
        """Check that a running source may become another one; every change is accepted by default.

        Args:
            before: the source in effect.
            after: the source that the user asks for now.
            field: path of the branch, for messages.

        Raises:
            InvalidSpecError: the change is not possible. Names what has changed.
        """

    def fixed(self, source: Source[Any, Any]) -> Mapping[str, str]:
        """Return what must not change while the source lives.

        What it is, for messages → its value, as stable text.

        The status keeps it, so that a change is noticed that was made while no operator ran. Empty
        by default.
        """
        del source
        return {}

    def recalled(
        self, spec: SpecT, common: Common, texts: Texts, *, fixed: Mapping[str, str], field: str
    ) -> Source[Any, Any]:
        """Return the source of an earlier spec, with what must not change as it was.

        Like `to_source` by default.

        A restarted operator asks for it while the newest spec is refused, so that `parallelism`
        takes effect.

        Args:
            spec: the branch that was in effect.
            common: what does not depend on the kind.
            texts: the texts that `texts` names, as they are now. They may be what is refused.
            fixed: what `fixed` returned for the source in effect; empty if that is unknown.
            field: path of the branch, for messages.

        Raises:
            InvalidSpecError: the source cannot be told any more. Names the field.
        """
        del fixed
        return self.to_source(spec, common, texts, field=field)

    def losses(self, numbers: Mapping[str, int]) -> Losses:
        """Return what the numbers of the drivers say of records that were lost.

        Called whenever the status is written: it must not block. Nothing is lost by default.

        Args:
            numbers: what `PlannerHooks.numbers` of this kind of source returned, added up over the
                hosts. It may be of another release of the connector: a number that is missing is
                unknown.
        """
        del numbers
        return NO_LOSSES

    def left_out(self, source: Source[Any, Any], split_id: SplitId) -> str:
        """Return what messages call the part of the source that a split belongs to, if it is left.

        Such as ``cluster dr``, once the user has taken that cluster out. Empty for a split of a
        part that the source still reads, as by default.

        Called for each split on its way out whenever the status is written: it must not block.

        Args:
            source: as the user wants it now.
            split_id: of a split that was taken from its reader.
        """
        del source, split_id
        return ""


OPERATOR_HALF: Final = ConnectorPart(
    name="operator half", base=OperatorHalf, derived="OperatorHalf"
)


def half_of(kind: str, connectors: Connectors | None = None) -> OperatorHalf[Any]:
    """Return the operator half of a connector's kind, among all installed ones by default.

    Raises:
        ConnectorError: there is no such connector, or it is broken.
    """
    half: OperatorHalf[Any] = (connectors or installed()).half(
        kind, lambda connector: connector.operator, OPERATOR_HALF
    )
    return half
