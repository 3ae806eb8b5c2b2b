"""What is lost is counted by drivers, and said in the words of the connector."""

from collections.abc import Mapping
from typing import Any

import pytest

from balanced_source.api import Problem
from balanced_source.connectors.files import SKIPPED_BLOCKS
from balanced_source.connectors.kafka.reasons import KafkaReason
from balanced_source.documents.report import SKIPPED_GAPS
from balanced_source.errors import ConnectorError
from balanced_source.reasons import Reason
from balanced_source_operator.contract.half import NO_LOSSES, Losses, OperatorHalf, half_of
from balanced_source_operator.controller import losses
from balanced_source_operator.controller.losses import counted_losses
from support.builders import make_report


class Half:
    """Says what it was asked."""

    def __init__(self, answer: Any = NO_LOSSES) -> None:
        self.asked: list[Mapping[str, int]] = []
        self.answer = answer

    def losses(self, numbers: Mapping[str, int]) -> Any:
        self.asked.append(numbers)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def use(monkeypatch: pytest.MonkeyPatch, answer: Any = NO_LOSSES) -> Half:
    half = Half(answer)
    monkeypatch.setattr(losses, "half_of", lambda kind: {"tapes": half}[kind])
    return half


def test_a_connector_gets_the_sum_of_the_numbers_of_all_hosts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One that a host leaves out is 0 there; what is no whole number is none of a connector."""
    lost = Losses(
        records=5,
        problems=(Problem(reason=KafkaReason.OFFSETS_SKIPPED, message="5 frames are torn"),),
    )
    half = use(monkeypatch, lost)
    first = make_report(metrics={"torn": 2, "skew": 1.5, "lags": {"a": 1}, "isLate": True})
    other = make_report(metrics={"torn": 3, "bent": 1})

    assert counted_losses("tapes", [first, other, make_report()]) == lost
    assert half.asked == [{"torn": 5, "bent": 1}]


@pytest.mark.parametrize(("gaps", "times"), [(1, "once"), (3, "3 times")])
def test_gaps_that_tasks_have_skipped_are_a_loss_of_any_connector(
    monkeypatch: pytest.MonkeyPatch, gaps: int, times: str
) -> None:
    own = Problem(reason=KafkaReason.OFFSETS_SKIPPED, message="5 frames are torn")
    use(monkeypatch, Losses(records=5, problems=(own,)))

    found = counted_losses("tapes", [make_report(metrics={SKIPPED_GAPS: gaps})])

    assert (found.records, found.gaps) == (5, gaps)
    assert [p.reason for p in found.problems] == [own.reason, Reason.RECORDS_SKIPPED]
    assert f"gone before they were read, {times}, and were skipped" in found.problems[1].message


def test_blocks_of_files_that_were_left_out_are_a_loss() -> None:
    found = counted_losses("files", [make_report(metrics={SKIPPED_BLOCKS: 2})])
    (problem,) = found.problems

    assert (found.records, found.gaps) == (0, 2)
    assert problem.reason == Reason.SPLITS_SKIPPED
    assert problem.message.startswith("2 blocks of files not read (onLoss: Skip)")
    assert counted_losses("files", [make_report(metrics={"skew": 1})]) == NO_LOSSES


def test_blocks_and_gaps_of_a_hybrid_source_add_up() -> None:
    numbers = {SKIPPED_BLOCKS: 2, SKIPPED_GAPS: 3}

    assert counted_losses("hybrid", [make_report(metrics=numbers)]).gaps == 5


def test_without_numbers_no_cluster_is_queried(monkeypatch: pytest.MonkeyPatch) -> None:
    half = use(monkeypatch, RuntimeError())

    assert counted_losses("tapes", [make_report()]) == NO_LOSSES
    assert half.asked == []


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (
            KeyError("torn"),
            "connector 'tapes' failed on the numbers of its drivers: KeyError: 'torn'. Report this",
        ),
        (None, "losses returned a NoneType, and Losses were expected"),
    ],
)
def test_a_mistake_names_the_connector(
    monkeypatch: pytest.MonkeyPatch, answer: Any, says: str
) -> None:
    use(monkeypatch, answer)
    with pytest.raises(ConnectorError, match=says):
        counted_losses("tapes", [make_report(metrics={"torn": 2})])


def test_a_connector_that_counts_nothing_has_no_losses() -> None:
    class Plain(OperatorHalf[Any]):
        def to_source(self, *_: Any, **__: Any) -> Any:
            raise AssertionError

    assert Plain().losses({"skippedOffsets": 3}) == NO_LOSSES


def test_kafka_names_the_offsets_that_it_skipped() -> None:
    (problem,) = half_of("kafka").losses({"skippedOffsets": 12}).problems

    assert problem.reason == "OffsetsSkipped"
    assert (
        problem.message
        == "12 offsets deleted before being read, and skipped (onDataLoss: Continue)"
    )
    assert half_of("kafka").losses({"skippedOffsets": 12}).records == 12


def test_kafka_reports_how_many_offsets_could_not_be_counted() -> None:
    (problem,) = half_of("kafka").losses({"skippedOffsets": 12, "uncountedOffsets": 30}).problems

    assert (
        problem.message
        == "12 offsets deleted before being read, and skipped (onDataLoss: Continue)."
        " Whether 30 more had to be skipped is unknown until the brokers answer"
    )


@pytest.mark.parametrize("kind", ["kafka", "hybrid"])
def test_kafka_does_not_take_offsets_that_it_could_not_count_for_none(kind: str) -> None:
    found = counted_losses(kind, [make_report(metrics={"uncountedOffsets": 30})])

    assert found.records is None
    assert found.problems == ()
    (doubt,) = found.doubts
    assert doubt.reason == "OffsetsUncounted"
    assert doubt.message == (
        "30 offsets not checked yet: what was deleted before being read, and skipped (onDataLoss:"
        " Continue), is unknown until the brokers answer"
    )


def test_what_one_host_has_counted_is_known_while_another_one_cannot_count() -> None:
    reports = [make_report(metrics={"uncountedOffsets": 30}), make_report()]
    reports.append(make_report(metrics={"skippedOffsets": 2}))

    assert counted_losses("kafka", reports).records == 2
