"""``run``: what the picture is made of, and what cannot run on one machine."""

import importlib.util
import io
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import structlog
import yaml
from rich.console import Console
from typer.testing import CliRunner

from balanced_source.documents.environment import from_variables, to_variables
from balanced_source.errors import InvalidSpecError
from balanced_source_operator.cli import app
from balanced_source_operator.laptop.driver import QueryProgress, advanced, check_prerequisites
from balanced_source_operator.laptop.picture import picture
from balanced_source_operator.laptop.run import local_environment
from balanced_source_operator.laptop.sink_folder import check_sink_folder
from balanced_source_operator.laptop.start_over import StartOver
from balanced_source_operator.spec.application import PipelineSpec
from balanced_source_operator.views.model import Adopted, SourceView
from support.builders import make_spec, source_body, spec_json


@pytest.fixture(autouse=True)
def _logging_is_left_as_it_was() -> Iterator[None]:
    before = structlog.get_config()
    yield
    structlog.configure(**before)


FILE = Path("/home/me/orders.yaml")
VIEW = SourceView(
    namespace="",
    name="orders",
    desired=2,
    epoch=1,
    parallelism=2,
    owners={("main", "orders", 0): 0},
    lag=30,
    adopted=Adopted(epoch=1, parallelism=2),
)


def batch(number: int, rows: int) -> dict[str, Any]:
    return {
        "event": "batch",
        "batch": number,
        "rows": rows,
        "durations": {"triggerExecution": 1500},
        "sources": [],
    }


def test_progress_follows_the_lines_of_the_query() -> None:
    progress = QueryProgress()
    for line in ({"event": "query started"}, batch(0, 10), {"event": "other"}, batch(1, 5)):
        progress = advanced(progress, line)

    assert progress == QueryProgress(is_started=True, batch=1, rows=15, last_rows=5, seconds=1.5)


def test_a_batch_has_the_epoch_and_the_readers_of_its_own_offset() -> None:
    line = {**batch(2, 7), "sources": [{"epoch": 12, "parallelism": 3}]}

    progress = advanced(QueryProgress(is_started=True), line)

    assert (progress.epoch, progress.readers, progress.lag) == (12, 3, None)


def test_a_batch_has_the_lag_that_it_left() -> None:
    """The report that a driver wrote while it ran counts its own records, too."""
    line = {**batch(2, 7), "sources": [{"epoch": 12, "parallelism": 3, "lag": 0}]}
    progress = advanced(QueryProgress(is_started=True), line)
    text = shown([(VIEW, progress)])

    assert progress.lag == 0
    assert text.endswith("epoch 12, 3 readers, 1 split, lag 0\n")


@pytest.mark.parametrize("line", [[], "text", {"event": "batch"}, {"event": "batch", "batch": "x"}])
def test_output_of_a_transform_is_not_progress(line: Any) -> None:
    assert advanced(QueryProgress(), line) == QueryProgress()


def test_the_driver_gets_the_environment_of_a_pod_with_secrets_beside_the_manifest() -> None:
    environment = local_environment("orders", make_spec(), FILE)

    assert from_variables(to_variables(environment)) == environment
    assert (environment.name, environment.uid, environment.secrets_dir) == (
        "orders",
        "local",
        "/home/me",
    )
    assert environment.pipeline is not None


def test_a_program_of_the_user_is_rejected_with_what_to_do() -> None:
    spec = make_spec()
    own = spec.model_copy(
        update={
            "application": spec.application.model_copy(update={"main_application_file": "a.py"})
        }
    )

    with pytest.raises(
        InvalidSpecError, match=r"only the packaged application runs here\. Start your own program"
    ):
        local_environment("orders", own, FILE)


def test_a_sink_without_a_path_is_named_before_anything_starts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "orders.yaml").write_text(yaml.safe_dump(source_body()))
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["run", "-f", "orders.yaml"])

    assert result.exit_code == 1
    assert "pipeline.sink.options: the option path is missing" in result.stderr
    assert not (tmp_path / ".balanced-source").exists()


@pytest.mark.parametrize(
    ("sink_format", "folder", "is_new"),
    [
        ("parquet", "output", False),
        ("parquet", "other", True),
        ("Parquet", "deleted", True),
        ("parquet", "s3a://bucket/other", False),
        ("delta", "other", False),
    ],
)
def test_a_checkpoint_of_another_output_folder_is_named_before_spark_starts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, sink_format: str, folder: str, is_new: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    for made in ("checkpoint/commits", "output/_spark_metadata", "other"):
        (tmp_path / made).mkdir(parents=True)
    (tmp_path / "checkpoint" / "commits" / "0").touch()
    sink = {"format": sink_format, "options": {"path": folder}}
    application = spec_json()["application"]
    pipeline = {"sink": sink, "checkpointLocation": "checkpoint"}
    found = make_spec(application={**application, "pipeline": pipeline}).application.pipeline
    assert found is not None

    if not is_new:
        check_sink_folder(found)
        return
    with pytest.raises(InvalidSpecError, match="Set path back, or start over with another"):
        check_sink_folder(found)


MISSPELT = yaml.safe_dump({**source_body(), "spec": {**source_body()["spec"], "paralelism": 3}})


@pytest.mark.parametrize(
    "command",
    [
        ["run"],
        ["local", "--dir", "documents"],
        ["plan", "--state", "state.json"],
        ["plan"],
        ["infer-schema"],
    ],
)
@pytest.mark.parametrize("text", [MISSPELT, "spec: [", ""], ids=["misspelt", "no YAML", "empty"])
def test_a_mistake_is_shown_as_validate_shows_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: list[str], text: str
) -> None:
    (tmp_path / "orders.yaml").write_text(text)
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, [*command, "-f", "orders.yaml"])
    checked = CliRunner().invoke(app, ["validate", "--server", "never", "-f", "orders.yaml"])

    expected = [line for line in checked.stdout.splitlines() if ": error: " in line]
    assert result.exit_code == (1 if text else 2), result.output
    assert result.stderr.splitlines() == expected or not text
    assert bool(expected) == bool(text)


def test_without_spark_the_command_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "orders.yaml").write_text(yaml.safe_dump(source_body()))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    result = CliRunner().invoke(app, ["run", "-f", "orders.yaml"])

    assert result.exit_code == 2
    assert "Error: run: the Python package pyspark is not installed for " in result.stderr
    assert "-m pip install 'pyspark'" in result.stderr


def test_without_java_the_command_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(shutil, "which", lambda _: None)

    with pytest.raises(
        InvalidSpecError, match="Spark needs Java 17 or 21: install it, or set JAVA_HOME"
    ):
        check_prerequisites()


STARTED = QueryProgress(is_started=True)
THIRD = QueryProgress(
    is_started=True, batch=3, rows=70, last_rows=5, seconds=0.5, epoch=1, readers=2
)
START = [(VIEW, QueryProgress()), (VIEW, STARTED), (VIEW, THIRD)]


def shown(looks: Iterable[tuple[SourceView, QueryProgress]], *, is_terminal: bool = False) -> str:
    text = io.StringIO()
    console = Console(
        file=text, width=100, force_terminal=is_terminal, color_system=None, _environ={}
    )
    with picture(console) as show:
        for view, progress in looks:
            show(view, progress)
            show(view, progress)
    return text.getvalue()


def test_elsewhere_than_on_a_terminal_there_is_a_line_per_phase_and_batch() -> None:
    assert shown(START) == (
        "Spark is starting …\n"
        "waiting for the first micro-batch …\n"
        "batch 3: 5 rows in 0.50 s; 70 rows so far; epoch 1, 2 readers, 1 split, lag 30\n"
    )


def test_a_batch_is_printed_once_with_its_own_readers_when_the_source_is_rescaled() -> None:
    rescaled = replace(VIEW, epoch=2, adopted=Adopted(epoch=2, parallelism=1))
    fourth = replace(THIRD, batch=4, last_rows=1, rows=71, epoch=2, readers=1)
    lines = shown([*START, (rescaled, THIRD), (rescaled, fourth)]).splitlines()

    assert lines[2:] == [
        "batch 3: 5 rows in 0.50 s; 70 rows so far; epoch 1, 2 readers, 1 split, lag 30",
        "rescaled from 2: epoch 2, 1 reader, 1 split",
        "batch 4: 1 row in 0.50 s; 71 rows so far; epoch 2, 1 reader, 1 split, lag 30",
    ]


def test_the_first_assignment_is_no_rescale() -> None:
    before = replace(VIEW, epoch=0, owners={}, adopted=Adopted(epoch=0, parallelism=0), lag=None)
    empty = replace(THIRD, batch=0, last_rows=0, rows=0, epoch=0, readers=0)

    assert shown([(before, empty), (VIEW, empty), (VIEW, THIRD)]).splitlines() == [
        "batch 0: 0 rows in 0.50 s; 0 rows so far; splits are not assigned yet, lag –",
        "batch 3: 5 rows in 0.50 s; 70 rows so far; epoch 1, 2 readers, 1 split, lag 30",
    ]


def test_a_query_without_an_assignment_yet_is_no_rescale() -> None:
    """The folder still has the report of the last run, until the new query reports."""
    none = replace(VIEW, adopted=Adopted(epoch=0, parallelism=0), lag=None)

    assert shown([(VIEW, THIRD), (none, THIRD), (VIEW, THIRD)]).splitlines() == [
        "batch 3: 5 rows in 0.50 s; 70 rows so far; epoch 1, 2 readers, 1 split, lag 30"
    ]


def test_a_problem_is_printed_when_it_comes_and_when_it_goes() -> None:
    first, second = "orders.yaml: not YAML. Correct it", "broker is away. Start it"
    notes = [(first,), (first, second), (second,), ()]
    lines = shown((replace(VIEW, notes=note), THIRD) for note in notes).splitlines()

    assert lines[0] == first
    assert lines[2:] == [second, "resolved: orders.yaml: not YAML", "resolved: broker is away"]


def test_a_text_that_replaces_another_is_news_and_nothing_is_resolved() -> None:
    """Such as one mistake in the manifest after another, or the same broker at another address."""
    texts = ("spec.paralelism: unknown field. Correct it", "spec.sorce: unknown field", "")
    looks = [{("InvalidSpec",): text} if text else {} for text in texts]
    lines = shown((replace(VIEW, problems=found), THIRD) for found in looks).splitlines()

    assert lines[0] == texts[0]
    assert lines[2:] == [texts[1], f"resolved: {texts[1]}"]


def test_a_problem_that_two_report_is_printed_once_and_resolved_when_both_are_over() -> None:
    text = "cluster main does not answer"
    looks: list[dict[tuple[str, ...], str]] = [
        {("coordinator",): text},
        {("coordinator",): text, ("driver",): text},
        {("driver",): text},
        {},
    ]
    lines = shown((replace(VIEW, problems=found), THIRD) for found in looks).splitlines()

    assert (lines[0], lines[2:]) == (text, [f"resolved: {text}"])


def test_on_a_terminal_there_is_a_bar_and_a_table() -> None:
    text = shown(START, is_terminal=True)

    assert "Spark is starting …" in text
    assert "waiting for the first micro-batch …" in text
    assert "━━━" in text
    assert "main/orders/0" in text


def pipeline_of(**options: str) -> PipelineSpec:
    application = spec_json()["application"]
    pipeline = {
        "sink": {"format": "parquet", "options": options},
        "checkpointLocation": "checkpoint",
    }
    found = make_spec(application={**application, "pipeline": pipeline}).application.pipeline
    assert found is not None
    return found


WAY = (
    ". To start over with balanced-source run, stop it, delete the folder"
    " .balanced-source/orders, and set another spec.application.pipeline.checkpointLocation than"
    " checkpoint and another path of the sink than output. Records are then read from the start"
    " positions of the manifest"
)


@pytest.mark.parametrize(
    ("message", "is_about_it"),
    [
        ("Restore the journal, or start the query with a new checkpointLocation", True),
        ("stop the query, restore the checkpoint, and start it again", True),
        ("Restore a newer checkpoint", True),
        ("change it back, or make a new source", True),
        ("topic oders does not exist", False),
    ],
)
def test_an_error_that_asks_for_another_checkpoint_says_what_to_do_here(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, message: str, *, is_about_it: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    start_over = StartOver(pipeline_of(path="output"), tmp_path / ".balanced-source" / "orders")
    expected = message + (WAY if is_about_it else "")

    assert start_over.advise(message) == expected
    with pytest.raises(InvalidSpecError) as caught, start_over.advising():
        raise InvalidSpecError(message, field="driver.log")
    assert str(caught.value) == f"driver.log: {expected}"


def test_a_sink_without_a_path_needs_no_other_one(tmp_path: Path) -> None:
    text = StartOver(pipeline_of(), tmp_path).advise("set another checkpointLocation")

    assert f"delete the folder {tmp_path}" in text
    assert "path of the sink" not in text
