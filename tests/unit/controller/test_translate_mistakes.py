"""Mistakes of a connector's operator half.

The last valid spec stays in effect, and a sentence names the connector.
"""

from dataclasses import replace
from typing import Any

import pytest
from pydantic import field_validator

from balanced_source.api import Source
from balanced_source.connectors.kafka import KafkaSource
from balanced_source.errors import BalancedSourceError, ConnectorError, InvalidSpecError
from balanced_source_operator.contract import choice
from balanced_source_operator.contract.base import Model
from balanced_source_operator.contract.half import Common, OperatorHalf, TextReference, Texts
from balanced_source_operator.controller import translate
from balanced_source_operator.validation.manifests import LocatedFinding
from support.builders import make_spec
from support.tapes import TapeSource
from support.world import kafka_source

SPEC = make_spec(source={"custom": {"connector": "tapes", "config": {}}})


class TapeSpec(Model):
    """Nothing to choose."""


class TapeOperatorHalf(OperatorHalf[TapeSpec]):
    """A half whose method `wrong` raises, or returns what it must not."""

    spec = TapeSpec
    description = "Tapes."

    def __init__(
        self, wrong: str = "", error: BaseException | None = None, made: Any = None
    ) -> None:
        self._wrong, self._error, self._made = wrong, error or KeyError("url"), made

    def _fail(self, method: str) -> None:
        if method == self._wrong:
            raise self._error

    def texts(self, spec: TapeSpec) -> Any:
        self._fail("texts")
        return self._made if self._wrong == "texts made" else ()

    def to_source(
        self, spec: TapeSpec, common: Common, texts: Texts, *, field: str
    ) -> Source[Any, Any]:
        self._fail("to_source")
        made: Source[Any, Any] = self._made if self._wrong == "made" else TapeSource()
        return made

    def check_change(
        self, before: Source[Any, Any], after: Source[Any, Any], *, field: str
    ) -> None:
        self._fail("check_change")

    def fixed(self, source: Source[Any, Any]) -> Any:
        self._fail("fixed")
        return self._made if self._wrong == "fixed made" else {}

    def reader_options(self, spec: TapeSpec) -> Any:
        return self._made if self._wrong == "reader_options made" else {}


def take_over() -> None:
    """All that the operator does with a new spec."""
    translate.texts_of(SPEC)
    source = translate.to_source(SPEC)
    translate.check_change(source, replace(source))  # type: ignore[type-var]
    translate.check_fixed({}, source)
    translate.reader_options(SPEC)


def use(monkeypatch: pytest.MonkeyPatch, half: TapeOperatorHalf) -> None:
    monkeypatch.setattr(translate, "half_of", lambda _: half)
    monkeypatch.setattr(choice, "half_of", lambda _: half)


def test_a_half_without_a_mistake_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, TapeOperatorHalf())
    take_over()


@pytest.mark.parametrize("wrong", ["texts", "to_source", "check_change", "fixed"])
def test_a_mistake_names_the_connector(monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    use(monkeypatch, TapeOperatorHalf(wrong))
    with pytest.raises(
        ConnectorError, match=r"connector .tapes. failed on spec.source.*: KeyError: .url.. Report"
    ):
        take_over()


@pytest.mark.parametrize("wrong", ["texts", "to_source", "check_change", "fixed"])
def test_an_operator_half_cannot_end_the_operator(
    monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    use(monkeypatch, TapeOperatorHalf(wrong, SystemExit(3)))
    with pytest.raises(ConnectorError, match="SystemExit: 3"):
        take_over()


@pytest.mark.parametrize("wrong", ["texts", "to_source", "check_change", "fixed"])
def test_a_refusal_of_an_operator_half_is_passed_on(
    monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    use(monkeypatch, TapeOperatorHalf(wrong, InvalidSpecError("no", field="f")))
    with pytest.raises(BalancedSourceError, match="f: no"):
        take_over()


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (None, "a NoneType was made, and a Source of kind 'tapes' was expected"),
        (kafka_source(), "a Source of kind 'kafka' was made"),
    ],
)
def test_a_source_of_another_connector_is_rejected(
    monkeypatch: pytest.MonkeyPatch, made: KafkaSource | None, says: str
) -> None:
    use(monkeypatch, TapeOperatorHalf("made", made=made))
    with pytest.raises(ConnectorError, match=says):
        take_over()


@pytest.mark.parametrize(
    ("wrong", "made", "says"),
    [
        ("texts", None, "texts returned a NoneType, and a tuple of TextReference was expected"),
        ("texts", TextReference("a", "b"), "texts returned a tuple with a str, and a TextRef"),
        ("fixed", None, "fixed returned a NoneType, and a mapping of texts to texts was expected"),
        ("fixed", {"a": 1}, "fixed returned a mapping with a int, and a text was expected"),
        ("reader_options", [], "reader_options returned a list, and a mapping of texts to texts"),
    ],
)
def test_an_answer_of_another_type_is_rejected(
    monkeypatch: pytest.MonkeyPatch, wrong: str, made: Any, says: str
) -> None:
    use(monkeypatch, TapeOperatorHalf(f"{wrong} made", made=made))
    with pytest.raises(ConnectorError, match=f"connector 'tapes' failed on .*: TypeError: {says}"):
        take_over()


class OwnModel(Model):
    """A model of the connector's own, which it asks when it makes a source."""

    password: int


def test_a_model_that_a_half_asks_is_quoted_on_one_line_and_without_values(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Asks(TapeOperatorHalf):
        def to_source(self, *_: Any, **__: Any) -> Any:
            return OwnModel.model_validate({"password": "secret"})

    use(monkeypatch, Asks())
    with pytest.raises(ConnectorError) as caught:
        take_over()

    assert str(caught.value) == (
        "connector 'tapes' failed on spec.source.custom.config: ValidationError: password: Input"
        " should be a valid integer, unable to parse string as an integer. Report this to the"
        " authors of its package"
    )


class Validated(Model):
    """Its validator raises what a test says."""

    text: str

    @field_validator("text")
    @classmethod
    def _refuse(cls, value: str) -> str:
        raise ValueError(value)


@pytest.mark.parametrize(("raised", "said"), [("one\n  two", "one two"), ("", "is not valid")])
def test_what_a_validator_raises_is_a_line(
    monkeypatch: pytest.MonkeyPatch, raised: str, said: str
) -> None:
    half = TapeOperatorHalf()
    half.spec = Validated  # type: ignore[assignment]
    use(monkeypatch, half)
    config = {"connector": "tapes", "config": {"text": raised}}

    with pytest.raises(InvalidSpecError) as caught:
        translate.to_source(make_spec(source={"custom": config}))

    assert str(caught.value) == f"spec.source.custom.config.text: {said}"


def test_a_problem_of_a_manifest_is_a_line() -> None:
    problem = LocatedFinding(
        file="a.yaml", document=1, line=2, column=3, field="spec", message="one\n  two"
    )

    assert str(problem) == "a.yaml:2:3: error: spec: one two"
