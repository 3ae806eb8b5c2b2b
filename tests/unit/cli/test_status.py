"""``status`` and ``top`` show who reads what; unknown is never shown as zero."""

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from balanced_source.documents import assignment as assignment_document
from balanced_source.documents import report as report_document
from balanced_source.documents.assignment import Assignment
from balanced_source.documents.report import MILLIS_BEHIND, HostReport
from balanced_source_adapters.folder import assignment_path, report_path, source_path
from balanced_source_operator.cli import app
from balanced_source_operator.resources.documents import config_map
from balanced_source_operator.resources.kinds import BALANCED_SOURCE, CONFIG_MAP
from balanced_source_operator.views import gather
from balanced_source_operator.views.model import (
    Adopted,
    ConditionView,
    OwnerChange,
    SourceView,
    moves_between,
    moves_under_way,
    readers,
)
from balanced_source_operator.views.render import as_json, detail, overview
from support.builders import UID, identity, source_body
from support.fake_kubernetes import FakeKubernetes

A, B, C = ("main", "orders", 0), ("main", "orders", 1), ("main", "orders", 2)
ASSIGNMENT = Assignment(epoch=4, parallelism=2, owners={A: 0, B: 1, C: 0})
REPORT = HostReport(
    incarnation=1,
    sequence=3,
    epoch=3,
    parallelism=1,
    owners={A: 0, B: 0},
    positions={A: 7, B: 9},
    lag=1234,
    heartbeat=10.0,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    assignment_path(tmp_path).write_text(assignment_document.encode(ASSIGNMENT, source="local"))
    report_path(tmp_path, "0").write_text(report_document.encode(REPORT, source="local"))
    return tmp_path


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments), env={"COLUMNS": "120"})
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_loss_that_may_be_is_shown() -> None:
    conditions = (
        ConditionView(type="DataLoss", status="Unknown", reason="OffsetsUncounted", message="30 …"),
        ConditionView(type="Degraded", status="False", reason="Healthy", message="fine"),
    )
    console = Console(file=io.StringIO(), width=120)

    console.print(overview([replace(view(1, {}), name="orders", conditions=conditions)]))

    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "orders: DataLoss=Unknown OffsetsUncounted: 30 …" in text
    assert "Degraded" not in text


def test_top_shows_readers_splits_and_moves(folder: Path) -> None:
    text = run("top", "orders", "--dir", str(folder))

    assert "orders: epoch 3 → 4, readers 1 → 2, splits 3, lag 1,234" in text
    assert [line.split() for line in text.splitlines() if "main/orders" in line][:2] == [
        ["0", "2", "–", "main/orders/0", "main/orders/2"],
        ["1", "1", "–", "main/orders/1"],
    ]
    assert "moving: 2 splits: main/orders/1 0 → 1, main/orders/2 none → 0" in text


def test_status_has_a_row_per_source(folder: Path) -> None:
    assert ["orders", "–", "1", "→", "2", "3", "1–2", "3", "→", "4", "1,234", "–"] in [
        line.split() for line in run("status", "orders", "--dir", str(folder)).splitlines()
    ]


def test_a_source_that_counts_no_records_shows_seconds(folder: Path) -> None:
    late = replace(REPORT, lag=None, metrics={MILLIS_BEHIND: 1500})
    report_path(folder, "0").write_text(report_document.encode(late, source="local"))

    assert "splits 3, lag 2 s" in run("top", "orders", "--dir", str(folder))
    (found,) = json.loads(run("status", "orders", "--dir", str(folder), "-o", "json"))
    assert (found["lag"], found["secondsBehind"]) == (None, 2)


def test_json_has_it_all(folder: Path) -> None:
    (found,) = json.loads(run("status", "orders", "--dir", str(folder), "-o", "json"))

    assert found["assignment"] == [
        {
            "reader": 0,
            "splits": [["main", "orders", 0], ["main", "orders", 2]],
            "recordsPerSecond": None,
        },
        {"reader": 1, "splits": [["main", "orders", 1]], "recordsPerSecond": None},
    ]
    assert (found["adoptedEpoch"], found["lag"], found["pendingSplits"]) == (3, 1234, None)


def test_a_source_that_has_just_started_knows_nothing(tmp_path: Path) -> None:
    source_path(tmp_path).write_text('{"name": "orders"}')
    text = run("top", "orders", "--dir", str(tmp_path))

    assert "readers –" in text
    assert "lag –" in text


@pytest.fixture
def home(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder in which `run` has served the source orders."""
    monkeypatch.chdir(tmp_path)
    documents = tmp_path / ".balanced-source" / "orders"
    documents.mkdir(parents=True)
    for document in folder.glob("*.json"):
        document.rename(documents / document.name)
    source_path(documents).write_text('{"name": "orders"}')
    return documents


@pytest.mark.parametrize("command", ["status", "top"])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--dir", "nowhere"], "--dir nowhere: there is no such folder. "),
        (
            ["--dir", ".balanced-source"],
            (
                "--dir .balanced-source: the folder holds no documents of a source. Name the"
                " folder of one source: .balanced-source/orders\n"
            ),
        ),
        (["--dir", "."], "Name the folder of one source: .balanced-source/orders\n"),
        (["--dir", "empty"], "Name the folder that balanced-source run or local uses; "),
        (
            ["wrong", "--dir", ".balanced-source/orders"],
            "the folder belongs to source 'orders', not 'wrong'. Name the folder of 'wrong', or",
        ),
    ],
)
def test_a_wrong_folder_is_an_error_that_says_which_one_to_name(
    home: Path, command: str, arguments: list[str], message: str
) -> None:
    (home.parent.parent / "empty").mkdir()
    result = CliRunner().invoke(app, [command, *arguments])

    assert result.exit_code == 2
    assert message in result.stderr


@pytest.mark.parametrize("stored", ['{"name": "orders"}', "{", "[]", ""])
def test_the_name_of_a_source_may_be_left_out(home: Path, stored: str) -> None:
    source_path(home).write_text(stored)

    assert "orders: epoch 3 → 4" in run("top", "--dir", str(home))


def test_a_damaged_document_is_named(folder: Path) -> None:
    report_path(folder, "0").write_text("{")

    assert "report cannot be read: " in run("top", "orders", "--dir", str(folder))


def view(
    epoch: int, owners: dict[tuple[str, str, int], int], adopted: Adopted | None = None
) -> SourceView:
    return SourceView(
        namespace="", name="s", epoch=epoch, parallelism=2, owners=owners, adopted=adopted
    )


def test_rates_follow_from_two_reports() -> None:
    then = view(
        1, {A: 0, B: 1}, Adopted(epoch=1, parallelism=2, positions={A: 0, B: 5}, heartbeat=10)
    )
    now = view(
        1, {A: 0, B: 1}, Adopted(epoch=1, parallelism=2, positions={A: 40, B: 5}, heartbeat=12)
    )

    assert [row.rate for row in readers(now, then)] == [20.0, 0.0]
    assert [row.rate for row in readers(now, now)] == [None, None]
    assert [row.rate for row in readers(now)] == [None, None]


def test_moves_are_differences_of_owners() -> None:
    after = view(2, {A: 1, C: 0})

    assert moves_between(view(1, {A: 0, B: 1}), after) == (
        OwnerChange(split=A, before=0, after=1),
        OwnerChange(split=B, before=1, after=None),
        OwnerChange(split=C, before=None, after=0),
    )
    assert moves_under_way(after) == ()


async def test_a_cluster_is_read_by_its_documents() -> None:
    server = FakeKubernetes()
    body = {
        **source_body(),
        "status": {"lag": None, "pendingSplits": 1, "application": {"state": "Running"}},
    }
    server.add(BALANCED_SOURCE, body)
    server.put(BALANCED_SOURCE, body, is_status=True)
    encoded = assignment_document.encode(ASSIGNMENT, source=UID)
    server.add(CONFIG_MAP, config_map(identity(), "orders-assignment", encoded))

    (found,) = await gather.of_cluster(server.client(), "default")

    assert (found.name, found.desired, found.epoch, found.owners) == (
        "orders",
        2,
        4,
        ASSIGNMENT.owners,
    )
    assert (found.lag, found.adopted) == (None, None)


async def test_hosts_of_a_source_are_shown_with_what_each_has_adopted() -> None:
    server = FakeKubernetes()
    named = [
        {"name": name, "role": "Member", "application": f"app-{name}", "state": "Running"}
        for name in "01"
    ]
    counts = {"readers": 1, "splits": 2, "acknowledgedEpoch": 4}
    body = {
        **source_body(),
        "status": {"hosts": [{**named[0], **counts, "lag": 5}, {**named[1], **counts}]},
    }
    server.add(BALANCED_SOURCE, body)
    server.put(BALANCED_SOURCE, body, is_status=True)
    second = replace(
        REPORT, host="1", epoch=4, parallelism=2, owners={C: 1}, positions={C: 3}, heartbeat=8.0
    )
    for host, report in (("0", REPORT), ("1", second)):
        name = identity().on_host(host).documents.readers
        server.add(
            CONFIG_MAP, config_map(identity(), name, report_document.encode(report, source=UID))
        )

    (found,) = await gather.of_cluster(server.client(), "default")

    assert found.adopted == Adopted(
        epoch=3,
        parallelism=2,
        owners={A: 0, B: 0, C: 1},
        positions={A: 7, B: 9, C: 3},
        heartbeat=8.0,
    )
    console = Console(file=io.StringIO(), width=120)
    console.print(detail(found))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    rows = [line.split() for line in text.splitlines() if "app-" in line]
    assert rows == [
        ["0", "Member", "app-0", "Running", "1", "2", "4", "5"],
        ["1", "Member", "app-1", "Running", "1", "2", "4", "–"],
    ]
    assert [host["lag"] for host in as_json(found)["hosts"]] == [5, None]


@pytest.mark.parametrize(("environment", "is_whole"), [({}, True), ({"COLUMNS": "40"}, False)])
def test_a_pipe_gets_a_line_per_sentence_however_long(
    folder: Path, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], *, is_whole: bool
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    report_path(folder, "0").write_text("{")

    output = CliRunner().invoke(app, ["status", "--dir", str(folder)], env=environment).stdout

    found = [line for line in output.splitlines() if "report cannot be read" in line]
    assert bool(found and len(found[0]) > 40) is is_whole


async def test_a_spec_that_no_operator_has_handled_is_said() -> None:
    server = FakeKubernetes()
    server.add(BALANCED_SOURCE, source_body())

    [new] = await gather.of_cluster(server.client(), "default", "orders")
    generation = source_body()["metadata"].get("generation", 1)
    status = {"observedGeneration": generation}
    server.edit(BALANCED_SOURCE, "default", "orders", {"status": status})
    [handled] = await gather.of_cluster(server.client(), "default", "orders")

    assert [note[:33] for note in new.notes] == ["no operator has handled generatio"]
    assert handled.notes == ()
