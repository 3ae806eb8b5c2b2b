"""Validate: from the spec to the values that the pure library works with.

The source's connector knows its branch.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from balanced_source.api import Boundedness, Problem, RebalanceMode, RebalancePolicy, Source
from balanced_source.assigners import STRATEGIES
from balanced_source.connectors.discovery import DiscoveringSource
from balanced_source.durations import seconds
from balanced_source.errors import InvalidSpecError
from balanced_source.host.alignment import unaligned
from balanced_source_operator.contract.blame import blamed
from balanced_source_operator.contract.half import (
    Common,
    OperatorHalf,
    TextReference,
    Texts,
    half_of,
)
from balanced_source_operator.contract.half_answers import checked_table, checked_texts
from balanced_source_operator.spec import (
    NO_BLUE_GREEN,
    NO_COLUMNS,
    NO_HOSTS,
    Application,
    AssignmentSpec,
    BalancedSourceSpec,
    Strategy,
)

MIN_INTERVAL: Final = 30.0
"""Seconds between two rebalances of mode Drift that a user may ask for: loads must be observed in
between."""

_ENDLESS: Final = (
    "readers ask for splits while they read, so the query ends when the source does, and this"
    " source never ends: leave out discoveryInterval of files, set stoppingOffsets in the last part"
    " of a hybrid source, or use processingTime"
)

NO_TEXTS: Final[Mapping[TextReference, str | None]] = MappingProxyType({})


def texts_of(spec: BalancedSourceSpec) -> tuple[TextReference, ...]:
    """Return the texts outside the resource that the spec refers to.

    Raises:
        InvalidSpecError: a connector refuses its part of the spec. Names the field.
        ConnectorError: the connector of the source cannot be used.
    """
    half = spec.source.half()
    with blamed(spec.source.kind, spec.source.field):
        return checked_texts(half.texts(spec.source.config(half)))


def to_source(spec: BalancedSourceSpec, texts: Texts = NO_TEXTS) -> Source[Any, Any]:
    """Return the source that the user asks for.

    Args:
        spec: what the user wrote.
        texts: those that `texts_of` names.

    Raises:
        InvalidSpecError: what CEL could not check. Names the field.
        ConnectorError: the connector of the source cannot be used.
    """
    made = _translated(
        spec, lambda half, config, common, field: half.to_source(config, common, texts, field=field)
    )
    pipeline = spec.application.pipeline
    with blamed(made.kind, spec.source.field):
        is_aligned = pipeline is not None and pipeline.alignment is not None
        if is_aligned and not made.has_event_times:
            raise InvalidSpecError(
                unaligned(made.kind), field="spec.application.pipeline.alignment"
            )
        _check_end(spec, made)
    return made


def _check_end(spec: BalancedSourceSpec, made: Source[Any, Any]) -> None:
    """Refuse a query that is to end with a source that never ends: it would fail after a while."""
    pipeline = spec.application.pipeline
    is_endless = made.boundedness is not Boundedness.BOUNDED and spec.source.half().awaits_end
    if is_endless and pipeline is not None and pipeline.trigger.available_now:
        raise InvalidSpecError(_ENDLESS, field="spec.application.pipeline.trigger.availableNow")


def to_recalled_source(
    spec: BalancedSourceSpec, texts: Texts, fixed: Mapping[str, str]
) -> Source[Any, Any]:
    """Return the source of an earlier spec, with what must not change as it was.

    See `OperatorHalf.recalled`.

    Raises:
        InvalidSpecError: the source cannot be told any more. Names the field.
        ConnectorError: the connector of the source cannot be used.
    """
    return _translated(
        spec,
        lambda half, config, common, field: half.recalled(
            config, common, texts, fixed=fixed, field=field
        ),
    )


def _translated(
    spec: BalancedSourceSpec,
    make: Callable[[OperatorHalf[Any], Any, Common, str], Source[Any, Any]],
) -> Source[Any, Any]:
    half = spec.source.half()
    if not half.can_have_hosts:
        _check_one_application(spec.application)
    chosen = spec.application.pipeline.columns if spec.application.pipeline is not None else None
    if half.columns is not None and not frozenset(chosen or ()) <= frozenset(half.columns):
        raise InvalidSpecError(NO_COLUMNS, field="spec.application.pipeline.columns")
    _check_row_fields(spec, half)
    common = Common(
        assigner=STRATEGIES[spec.assignment.strategy.value](),
        rebalance_policy=_rebalance_policy(spec.assignment),
    )
    with blamed(spec.source.kind, spec.source.field):
        made: object = make(half, spec.source.config(half), common, spec.source.field)
        if not isinstance(made, Source) or made.kind != spec.source.kind:
            raise TypeError(
                f"{_named(made)} was made, and a Source of kind {spec.source.kind!r} was expected"
            )
        return made


def _check_one_application(application: Application) -> None:
    if application.hosts is not None:
        raise InvalidSpecError(NO_HOSTS, field="spec.application.hosts")
    if application.is_blue_green:
        raise InvalidSpecError(NO_BLUE_GREEN, field="spec.application.restart.strategy")


def _check_row_fields(spec: BalancedSourceSpec, half: OperatorHalf[Any]) -> None:
    pipeline = spec.application.pipeline
    for name in sorted(
        (pipeline.row_fields if pipeline is not None else {}).keys() - half.row_fields
    ):
        raise InvalidSpecError(
            f"sources of kind {spec.source.kind!r} do not have this: leave it out",
            field=f"spec.application.pipeline.{name}",
        )


def reader_options(spec: BalancedSourceSpec) -> Mapping[str, str]:
    """Return as options what the packaged application must know of a valid spec's source.

    Raises:
        InvalidSpecError, ConnectorError: as `to_source` does.
    """
    half, pipeline = spec.source.half(), spec.application.pipeline
    with blamed(spec.source.kind, spec.source.field):
        own = checked_table("reader_options", half.reader_options(spec.source.config(half)))
    return {**own, **(pipeline.row_fields if pipeline is not None else {})}


def _named(made: object) -> str:
    return (
        f"a Source of kind {made.kind!r}"
        if isinstance(made, Source)
        else f"a {type(made).__name__}"
    )


def check_change(before: Source[Any, Any], after: Source[Any, Any]) -> None:
    """Check that a running source may become another one.

    Raises:
        InvalidSpecError: names what cannot be changed.
    """
    if before.kind != after.kind:
        raise InvalidSpecError(
            f"the kind of a source cannot be changed from {before.kind!r} to {after.kind!r}: make a"
            " new source",
            field="spec.source",
        )
    with blamed(after.kind, _field(after.kind)):
        half_of(after.kind).check_change(before, after, field=_field(after.kind))


def fixed_values(source: Source[Any, Any]) -> Mapping[str, str]:
    """Return what must not change while the source lives; see `OperatorHalf.fixed`."""
    with blamed(source.kind, _field(source.kind)):
        return checked_table("fixed", half_of(source.kind).fixed(source))


def check_fixed(before: Mapping[str, str], source: Source[Any, Any]) -> None:
    """Check that nothing has changed that must not, since `before` was in effect.

    What is new there does not count.

    Raises:
        InvalidSpecError: names what has changed.
    """
    for name, value in fixed_values(source).items():
        if before.get(name, value) != value:
            raise InvalidSpecError(
                "was changed while the operator was down, and cannot be while the source lives:"
                " change it back, or make a new source",
                field=name,
            )


def assigner_warning(source: Source[Any, Any], parallelism: int) -> Problem | None:
    """Return what is wrong with how the source's strategy spreads splits over so many readers."""
    return source.assigner.warning(parallelism) if isinstance(source, DiscoveringSource) else None


def _field(kind: str) -> str:
    return f"spec.source.{kind}"


def _rebalance_policy(assignment: AssignmentSpec) -> RebalancePolicy:
    wanted = assignment.rebalance
    if assignment.strategy is Strategy.HASH and wanted.mode is RebalanceMode.DRIFT:
        raise InvalidSpecError(
            "Drift has no meaning for strategy Hash", field="spec.assignment.rebalance.mode"
        )
    interval = seconds(wanted.min_interval)
    if interval < MIN_INTERVAL:
        raise InvalidSpecError(
            f"at least {MIN_INTERVAL:.0f}s", field="spec.assignment.rebalance.minInterval"
        )
    return RebalancePolicy(
        mode=wanted.mode,
        max_imbalance=wanted.max_imbalance,
        min_interval=interval,
        max_moves=wanted.max_moves,
    )
