"""``balanced-source plan``.

What a changed BalancedSource would move, from the stored enumerator state.
"""

import asyncio
import io
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from balanced_source.api import RebalanceCause, Source, SplitId
from balanced_source.assigners import Layout, Move, Wish
from balanced_source.connectors.discovery import DiscoveringSource
from balanced_source.coordinator import Checkpoint, state_codec
from balanced_source.coordinator.state import runs_on
from balanced_source.documents.storage import Names, unpack
from balanced_source.errors import InvalidSpecError, StateError
from balanced_source.names import counted, reason_of, split_name
from balanced_source_adapters.mistakes import named
from balanced_source_operator.contract import yaml_text
from balanced_source_operator.contract.yaml_text import YamlError
from balanced_source_operator.controller.translate import texts_of, to_source
from balanced_source_operator.host_plan import HostPlan, plan_hosts
from balanced_source_operator.kube.connect import connect
from balanced_source_operator.kube.port import KubernetesApi, KubernetesError
from balanced_source_operator.local import read_manifest, read_name, read_spec, read_texts
from balanced_source_operator.resources.documents import blob_of
from balanced_source_operator.resources.kinds import BALANCED_SOURCE, CONFIG_MAP
from balanced_source_operator.runtime import metadata as config_maps
from balanced_source_operator.runtime.documents import read_content
from balanced_source_operator.spec import BalancedSourceSpec, parse_spec
from balanced_source_operator.spec.hosts import host_names
from balanced_source_operator.validation.manifests import located

_EXPECTED: Final = (
    "Name the file enumerator.json in the folder of local mode, or that folder with --dir, or the"
    " ConfigMap NAME-enumerator of the source. A source that has just started has none yet"
)
"""Where a state lies."""

SHOWN_MOVES: Final = 20
"""Moves that the table lists; JSON lists all."""


def from_file(file: Path, state: Path) -> HostPlan:
    """The plan for a spec and a state that lie in files.

    Raises:
        InvalidSpecError, StateError: one of them cannot be used.
    """
    with located(file):
        spec = read_spec(file)
        source = to_source(spec, read_texts(file, spec))
    try:
        text = state.read_text()
    except (OSError, ValueError) as error:
        raise InvalidSpecError(
            f"cannot be read: {reason_of(error)}. {_EXPECTED}", field=str(state)
        ) from error
    _with_assigner(source)
    try:
        return make_plan(spec, source, _document(text))
    except StateError as error:
        raise StateError(f"{state}: {str(error).rstrip('.')}. {_EXPECTED}") from error


def from_cluster(file: Path, *, namespace: str = "", context: str = "") -> HostPlan:
    """The plan for a spec in a file and the state in the cluster that kubectl would talk to.

    Args:
        file: the manifest.
        namespace: of the source; that of the manifest, or of the context, if empty.
        context: of kubectl; the current one if empty.

    Raises:
        InvalidSpecError, StateError: spec or state cannot be used, or the cluster does not answer.
    """
    with located(file):
        spec, name = read_spec(file), read_name(file)
        namespace = namespace or read_manifest(file)["metadata"].get("namespace") or ""
    return asyncio.run(_from_cluster(spec, namespace, name, context=context))


async def _from_cluster(
    spec: BalancedSourceSpec, namespace: str, name: str, *, context: str
) -> HostPlan:
    try:
        stored = "name a stored state with --state"
        async with connect(context=context, otherwise=stored) as (api, default_namespace):
            return await plan_with(api, spec, namespace=namespace or default_namespace, name=name)
    except KubernetesError as error:
        raise StateError(f"the cluster does not answer: {error}") from error


async def plan_with(
    api: KubernetesApi, spec: BalancedSourceSpec, *, namespace: str, name: str
) -> HostPlan:
    """The plan for `spec`, with the source of that name as it is in the cluster.

    Raises:
        StateError: there is no such source, or it has no state yet.
        KubernetesError: the API server does not answer.
    """
    stored = await api.get(CONFIG_MAP, namespace, Names.of(name).state)
    if stored is None:
        raise StateError(
            f"there is no stored state of a BalancedSource {name!r} in namespace {namespace!r}"
        )
    body = await api.get(BALANCED_SOURCE, namespace, name)
    # The state does not know the strategy: only the spec in effect tells whether that changes.
    before = parse_spec(body["spec"]) if body is not None else None
    source = to_source(spec, await config_maps.read_texts(api, namespace, texts_of(spec)))
    content = await read_content(api, namespace, stored)
    return make_plan(spec, source, content.document, before=before)


def make_plan(
    spec: BalancedSourceSpec,
    source: Source[Any, Any],
    state: str,
    *,
    before: BalancedSourceSpec | None = None,
) -> HostPlan:
    """The plan for the source of `spec`, continuing from a stored state.

    `before` is the spec in effect, if known.

    Raises:
        StateError: the state cannot be used, or no assigner decides about the splits of such a
            source.
    """
    with named(source):
        checkpoint = state_codec.decode(state, _with_assigner(source))
        causes = _causes(spec, before, checkpoint)
        return _planned(
            source, checkpoint, parallelism=spec.parallelism, causes=causes, hosts=host_names(spec)
        )


def rescaled(
    source: Source[Any, Any],
    checkpoint: Checkpoint[Any, Any],
    parallelism: int,
    *,
    hosts: tuple[str, ...] = (),
) -> HostPlan:
    """The plan for another number of readers, and nothing else.

    Args:
        source: what is read.
        checkpoint: who reads what now.
        parallelism: number of readers then.
        hosts: names of the hosts then; those of today if it is empty.

    Raises:
        StateError: no assigner decides about the splits of such a source.
        ContractViolationError: `parallelism` is below 1.
    """
    causes = [RebalanceCause.RESCALE] if parallelism != checkpoint.coordinator.parallelism else []
    hosts = hosts or checkpoint.coordinator.members
    return _planned(source, checkpoint, parallelism=parallelism, causes=causes, hosts=hosts)


def _with_assigner(source: Source[Any, Any]) -> DiscoveringSource[Any]:
    if not isinstance(source, DiscoveringSource):
        raise StateError(
            f"sources of kind {source.kind!r} assign their splits by themselves: they have no plan"
        )
    return source


def _planned(
    source: Source[Any, Any],
    checkpoint: Checkpoint[Any, Any],
    *,
    parallelism: int,
    causes: list[RebalanceCause],
    hosts: tuple[str, ...],
) -> HostPlan:
    found = _with_assigner(source)
    coordinator, unassigned = checkpoint.coordinator, checkpoint.enumerator.unassigned
    known = [*coordinator.owners, *unassigned]
    current = Layout(
        parallelism=coordinator.parallelism,
        owners={
            s: o for s, o in coordinator.owners.items() if s not in checkpoint.enumerator.finished
        },
        pending=tuple(unassigned),
        loads=coordinator.loads.loads(),
    )
    wish = Wish(
        parallelism=parallelism,
        assigner=found.assigner,
        policy=found.rebalance_policy,
        causes=causes,
        unwanted=[s for s in known if not found.subscribes(s)],
    )
    return plan_hosts(current, wish, before=coordinator.members, after=hosts)


def _causes(
    spec: BalancedSourceSpec, before: BalancedSourceSpec | None, checkpoint: Checkpoint[Any, Any]
) -> list[RebalanceCause]:
    """Why splits may move. Another strategy counts as asked for."""
    causes = []
    if spec.parallelism != checkpoint.coordinator.parallelism:
        causes.append(RebalanceCause.RESCALE)
    is_other_strategy = (
        before is not None and before.assignment.strategy != spec.assignment.strategy
    )
    if is_other_strategy or spec.rebalance_nonce != checkpoint.coordinator.rebalance_nonce:
        causes.append(RebalanceCause.REQUESTED)
    return causes


def _document(text: str) -> str:
    """The document in a file: itself, or in a manifest of its ConfigMap."""
    try:
        manifest = yaml_text.load(text)
    except YamlError as error:
        raise StateError(f"neither JSON nor YAML: {error}") from error
    is_manifest = isinstance(manifest, Mapping) and manifest.get("kind") == CONFIG_MAP.kind
    return unpack(blob_of(manifest)) if is_manifest else text


def as_json(found: HostPlan) -> str:
    """The whole plan."""

    def name(split_id: SplitId) -> list[str | int]:
        return list(split_id)

    content = {
        "owners": [{"split": name(s), "reader": o} for s, o in sorted(found.owners.items())],
        "moves": [
            {"split": name(m.split_id), "from": m.before, "to": m.after, **_hosts(found, m)}
            for m in found.moves
        ],
        "dropped": [name(s) for s in found.dropped],
        "before": asdict(found.before),
        "after": asdict(found.after),
    }
    if found.has_several:
        content["hosts"] = {"before": found.splits_before, "after": found.splits_after}
    return json.dumps(content, indent=2) + "\n"


def _hosts(found: HostPlan, move: Move) -> dict[str, str | None]:
    if not found.has_several:
        return {}
    return {
        "fromHost": None if move.before is None else runs_on(move.before, found.hosts_before),
        "toHost": runs_on(move.after, found.hosts_after),
    }


def as_table(found: HostPlan) -> str:
    """The plan for people: hosts and readers before and after, then what moves."""
    buffer = io.StringIO()
    console = Console(file=buffer, width=100)
    if found.has_several:
        console.print(_host_table(found))
    console.print(_readers(found))
    moving = [move for move in found.moves if move.before is not None]
    new = len(found.moves) - len(moving)
    console.print(
        f"{len(moving)} of {counted(len(found.owners), 'split')} will move, {new} will get a first"
        f" reader, {len(found.dropped)} will not be read any more"
    )
    if found.has_several:
        console.print(f"{found.moved_between_hosts} of them will move to another host")
    console.print(
        f"imbalance {found.before.imbalance:.2f} → {found.after.imbalance:.2f} (1.00 is the best"
        " possible)"
    )
    for move in found.moves[:SHOWN_MOVES]:
        way = (
            f"{_place(found, move.before, found.hosts_before)} →"
            f" {_place(found, move.after, found.hosts_after)}"
        )
        console.print(f"  {split_name(move.split_id)}: {way}", markup=False, highlight=False)
    if len(found.moves) > SHOWN_MOVES:
        console.print(f"  … and {len(found.moves) - SHOWN_MOVES} more (--output json lists all)")
    console.print(
        "Splits that are not known yet, such as those of a topic that this manifest adds, are not"
        " in this plan"
    )
    return buffer.getvalue()


def _place(found: HostPlan, reader: int | None, hosts: tuple[str, ...]) -> str:
    if reader is None:
        return "new"
    return f"reader {reader} on host {runs_on(reader, hosts)}" if found.has_several else str(reader)


def _host_table(found: HostPlan) -> Table:
    table = Table("host", "splits", "splits then")
    before, after = found.splits_before, found.splits_after
    for name in sorted({*before, *after}, key=lambda host: (len(host), host)):
        table.add_row(name, str(before.get(name, "–")), str(after.get(name, "–")))
    return table


def _readers(found: HostPlan) -> Table:
    table = Table("reader", "splits", "splits then", "records/s", "records/s then")
    for reader in range(max(len(found.before.splits), len(found.after.splits))):
        cells = [
            _cell(column, reader)
            for column in (
                found.before.splits,
                found.after.splits,
                found.before.load,
                found.after.load,
            )
        ]
        table.add_row(str(reader), *cells)
    return table


def _cell(column: tuple[float, ...], reader: int) -> str:
    return f"{column[reader]:.0f}" if reader < len(column) else "–"
