"""The page of a connector's options and fields, for its own documentation."""

from collections.abc import Sequence
from typing import Any

import pytest
from typer.testing import CliRunner

from balanced_source.api import AsyncCall, Caller, CallExecutor, Connector, Identity, SecretReader
from balanced_source.errors import ConnectorError
from balanced_source_adapters.connectors import Connectors
from balanced_source_adapters.registrations import Registration
from balanced_source_operator import cli
from balanced_source_operator.cli import reference
from balanced_source_operator.contract import half as operator_halves
from balanced_source_operator.contract.base import Model
from balanced_source_operator.contract.half import Common, OperatorHalf, Texts
from balanced_source_spark import option_list
from balanced_source_spark.contract.option_table import Option
from support.tapes import Shelf, TapeHalf


class ReelSpec(Model):
    """What is read."""

    shelf: str
    """Shelf | its reels."""

    speed: int = 24
    """Frames per second."""


class ReelHalf(OperatorHalf[ReelSpec]):
    """Reels."""

    spec = ReelSpec
    description = "Reels of a shelf."

    def to_source(self, spec: ReelSpec, common: Common, texts: Texts, *, field: str) -> Any:
        raise NotImplementedError


class ReelConnector(Connector):
    """Reels of a plug-in."""

    kind = "reels"
    operator = f"{__name__}:ReelHalf"
    spark = f"{__name__}:ReelSparkHalf"

    def executor(self, secrets: SecretReader, *, caller: Caller, client_id: str) -> CallExecutor:
        raise NotImplementedError

    def identity_of(self, call: AsyncCall) -> Identity:
        raise NotImplementedError


class Named(TapeHalf):
    """Declares its options."""

    def __init__(self, own: Sequence[Option] | None) -> None:
        super().__init__(Shelf())
        self._own = own

    def options(self) -> Any:
        return self._own


@pytest.fixture
def plug_in(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = Registration(
        kind="reels", reference=f"{__name__}:ReelConnector", package="reels-connector 1.2.3"
    )
    for module in (reference, operator_halves):
        monkeypatch.setattr(module, "installed", lambda: Connectors([entry]))


@pytest.mark.usefixtures("plug_in")
def test_the_page_of_a_plug_in_names_its_fields_and_options(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = {"Reels": [{"name": "shelf", "default": "`top`", "meaning": "Where the reels are."}]}
    monkeypatch.setattr(reference, "_listed", lambda kind: own if kind == "reels" else {})

    done = CliRunner().invoke(cli.app, ["reference", "reels"])

    assert done.exit_code == 0, done.output
    assert "From the package `reels-connector 1.2.3`." in done.stdout
    assert "| `shelf` | `top` | Where the reels are. |" in done.stdout
    assert "`spec.source.custom.connector` is `reels`." in done.stdout
    rows = [line for line in done.stdout.splitlines() if line.startswith("| `spec")]
    assert rows == [
        "| `spec.source.custom.config.shelf` | string | required | Shelf \\| its reels. |",
        "| `spec.source.custom.config.speed` | integer | `24` | Frames per second. |",
    ]


@pytest.mark.usefixtures("plug_in")
def test_a_connector_that_names_no_options_is_said_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference, "_listed", lambda _: None)

    assert "The connector does not name its options." in reference.page("reels")


def test_a_connector_that_is_not_installed_is_an_error_in_words() -> None:
    done = CliRunner().invoke(cli.app, ["reference", "reels"])

    assert (done.exit_code, done.stdout) == (2, "")
    assert "no connector of kind 'reels' is installed" in done.stderr


def test_options_of_a_built_in_connector_come_from_a_process_of_spark_s_side() -> None:
    page = reference.page("kinesis")

    assert "| `streams` |" in page
    assert "| `journalLocation` |" in page, "it is read with a journal"
    assert "| `spec.source.kinesis.streams` |" in page


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        (None, None),
        ((Option(name="shelf", meaning="Where.", group="Reels", default="`a`"),), "shelf"),
    ],
)
def test_options_are_listed_by_group(
    monkeypatch: pytest.MonkeyPatch, own: Any, expected: str | None
) -> None:
    monkeypatch.setattr(option_list, "half_of", lambda _: Named(own))

    found = option_list.options_of("reels")

    if expected is None:
        assert found is None
    else:
        assert found is not None
        assert found["Reels"] == [{"name": "shelf", "default": "`a`", "meaning": "Where."}]
        assert len(found) == 2, "and those of a journal"


def test_a_broken_connector_is_a_sentence_on_stderr(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(_: str) -> Any:
        raise ConnectorError("connector 'reels' is\nbroken")

    monkeypatch.setattr(option_list, "half_of", broken)

    assert option_list.main("reels") == 1
    assert capsys.readouterr() == ("", "connector 'reels' is broken\n")


def test_options_are_printed_as_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(option_list, "options_of", lambda kind: {"Reels": [{"name": kind}]})

    assert option_list.main("reels") == 0
    assert capsys.readouterr() == ('{"Reels": [{"name": "reels"}]}', "")
