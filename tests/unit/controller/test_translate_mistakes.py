"""Mistakes of a connector's operator half.

The last valid spec stays in effect, and a sentence names the connector.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from balanced_source.api import Source
from balanced_source.connectors.kafka import KafkaSource
from balanced_source.errors import BalancedSourceError, ConnectorError, InvalidSpecError
from balanced_source_operator.contract.base import Model
from balanced_source_operator.contract.half import Common, OperatorHalf, TextReference, Texts
from balanced_source_operator.controller import translate
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

    def texts(self, spec: TapeSpec) -> tuple[TextReference, ...]:
        self._fail("texts")
        return ()

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

    def fixed(self, source: Source[Any, Any]) -> Mapping[str, str]:
        self._fail("fixed")
        return {}


def take_over() -> None:
    """All that the operator does with a new spec."""
    translate.texts_of(SPEC)
    source = translate.to_source(SPEC)
    translate.check_change(source, replace(source))  # type: ignore[type-var]
    translate.check_fixed({}, source)


def use(monkeypatch: pytest.MonkeyPatch, half: TapeOperatorHalf) -> None:
    monkeypatch.setattr(translate, "half_of", lambda _: half)


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
