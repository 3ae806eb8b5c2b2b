"""``balanced-source plan``.

Says what would happen, in a table or as JSON, and what is wrong in a sentence.
"""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from balanced_source.coordinator import state_codec
from balanced_source.errors import StateError
from balanced_source_adapters.folder import state_path
from balanced_source_operator.cli import app
from balanced_source_operator.controller.translate import to_source
from balanced_source_operator.dry_run import make_plan, plan_with
from balanced_source_operator.resources.documents import config_map
from balanced_source_operator.resources.kinds import BALANCED_SOURCE, CONFIG_MAP
from support.builders import identity, make_spec, source_body
from support.numbers_source import NumbersSource
from support.stage import Stage


def stored_state() -> str:
    """Four readers, and eight splits of topic orders with them."""
    stage = (
        Stage(readers=4, hosts=1, source=to_source(make_spec()))
        .topic("orders", 8, cluster="main")
        .running()
    )
    return state_codec.encode(
        stage.operator.coordinator.checkpoint(), stage.operator.source, uid=identity().uid
    )


STATE = stored_state()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "state.json").write_text(STATE)
    (tmp_path / "state.yaml").write_text(
        yaml.safe_dump(config_map(identity(), "orders-enumerator", STATE))
    )
    return tmp_path


def run(folder: Path, *arguments: str, state: str = "state.json", **spec: Any) -> Result:
    file = folder / "new.yaml"
    file.write_text(yaml.safe_dump(source_body(**spec)))
    return CliRunner().invoke(
        app, ["plan", "-f", str(file), "--state", str(folder / state), *arguments]
    )


def test_the_folder_of_local_mode_is_named_as_for_status(folder: Path) -> None:
    (folder / "state.json").rename(state_path(folder))
    file = folder / "new.yaml"
    file.write_text(yaml.safe_dump(source_body(parallelism=8)))
    command = ["plan", "-f", str(file), "--dir", str(folder)]
    result = CliRunner().invoke(app, command)
    both = CliRunner().invoke(app, [*command, "--state", str(state_path(folder))])
    wrong = CliRunner().invoke(app, ["plan", "-f", str(file), "--dir", str(folder / "none")])

    assert result.exit_code == 0, result.output
    assert "4 of 8 splits will move" in result.output
    assert "--dir, --state: name a folder or a state, not both" in both.stderr
    assert "there is no such folder. balanced-source run uses .balanced-source" in wrong.stderr


@pytest.mark.parametrize("text", ["{}", None])
def test_a_wrong_file_is_named_with_the_right_one(folder: Path, text: str | None) -> None:
    if text is not None:
        (folder / "assignment.json").write_text(text)
    result = run(folder, state="assignment.json", parallelism=8)

    assert result.exit_code == 2
    assert f"Error: {folder}/assignment.json: " in result.stderr
    assert "Name the file enumerator.json in the folder of local mode" in result.stderr


@pytest.mark.parametrize("state", ["state.json", "state.yaml"])
def test_the_table_lists_moves(folder: Path, state: str) -> None:
    result = run(folder, state=state, parallelism=8)

    assert result.exit_code == 0, result.output
    assert (
        "4 of 8 splits will move, 0 will get a first reader, 0 will not be read any more"
        in result.output
    )
    assert "imbalance 1.00 → 1.00" in result.output
    assert "  main/orders/4: 0 → 4" in result.output


def test_json_has_it_all(folder: Path) -> None:
    found = json.loads(run(folder, "-o", "json", parallelism=3).stdout)

    assert found["moves"] == [
        {"split": ["main", "orders", 3], "from": 3, "to": 0},
        {"split": ["main", "orders", 7], "from": 3, "to": 1},
    ]
    assert found["after"]["splits"] == [3, 3, 2]
    assert len(found["owners"]) == 8


def test_moves_between_hosts_are_named(folder: Path) -> None:
    """Readers 1 and 3 of four become the second host's.

    Its readers get splits; nothing else moves.
    """
    hosts = {"application": {**source_body()["spec"]["application"], "hosts": {"count": 2}}}
    result = run(folder, parallelism=4, **hosts)
    found = json.loads(run(folder, "-o", "json", parallelism=4, **hosts).stdout)

    assert result.exit_code == 0, result.output
    assert (
        "4 of 8 splits will move, 0 will get a first reader, 0 will not be read any more"
        in result.output
    )
    assert "4 of them will move to another host" in result.output
    assert "  main/orders/2: reader 2 on host 0 → reader 1 on host 1" in result.output
    assert found["hosts"] == {"before": {"0": 8}, "after": {"0": 4, "1": 4}}
    assert {(move["fromHost"], move["toHost"]) for move in found["moves"]} == {("0", "1")}


def test_a_host_that_is_added_with_readers_takes_its_share(folder: Path) -> None:
    """With `readersPerHost`, `kubectl scale` changes both."""
    hosts = {
        "application": {**source_body()["spec"]["application"], "hosts": {"readersPerHost": 4}}
    }
    found = json.loads(run(folder, "-o", "json", parallelism=8, **hosts).stdout)

    assert found["hosts"]["after"] == {"0": 4, "1": 4}
    assert found["after"]["splits"] == [1] * 8


def test_no_change_moves_nothing(folder: Path) -> None:
    assert "0 of 8 splits will move" in run(folder, parallelism=4).output


def test_a_nonce_is_a_cause(folder: Path) -> None:
    assert "0 of 8 splits will move" in run(folder, parallelism=4, rebalanceNonce=5).output


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{}", "not a document"),
        (": :", "neither JSON nor YAML"),
        (STATE.replace("orders", "others"), "digest differs"),
    ],
)
def test_an_unusable_state_is_reported(folder: Path, text: str, told: str) -> None:
    (folder / "state.json").write_text(text)
    result = run(folder, parallelism=8)

    assert result.exit_code == 2
    assert told in " ".join(result.output.split())


class Cluster:
    """Answers `get` from a table."""

    def __init__(self, *manifests: dict[str, Any]) -> None:
        self._found = {(m["kind"], m["metadata"]["name"]): m for m in manifests}

    async def get(self, kind: Any, namespace: str, name: str) -> Any:
        return self._found.get((kind.kind, name))


async def test_the_cluster_is_asked() -> None:
    cluster = Cluster(
        config_map(identity(), "orders-enumerator", STATE), source_body(parallelism=4)
    )
    assert {CONFIG_MAP.kind, BALANCED_SOURCE.kind} == {"ConfigMap", "BalancedSource"}

    found = await plan_with(cluster, make_spec(parallelism=8), namespace="default", name="orders")  # type: ignore[arg-type]
    hashed = await plan_with(  # another strategy moves splits although parallelism stays
        cluster,  # type: ignore[arg-type]
        make_spec(parallelism=4, assignment={"strategy": "Hash"}),
        namespace="default",
        name="orders",
    )
    assert len(found.moves) == 4
    assert hashed.moves


async def test_a_source_without_state_is_reported() -> None:
    with pytest.raises(
        StateError, match="no stored state of a BalancedSource 'orders' in namespace 'default'"
    ):
        await plan_with(Cluster(), make_spec(), namespace="default", name="orders")  # type: ignore[arg-type]


def test_a_source_that_assigns_by_itself_has_no_plan() -> None:
    with pytest.raises(StateError, match="they have no plan"):
        make_plan(make_spec(), NumbersSource(()), STATE)
