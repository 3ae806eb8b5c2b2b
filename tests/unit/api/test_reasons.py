"""Every reason of a condition or event is in one list and on its page, with cause and remedy."""

import ast
import json
import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest

from balanced_source.connectors.kafka.reasons import KafkaReason
from balanced_source.reason_kinds import ExplainedReason, reason_fault
from balanced_source.reasons import Reason, ReasonKind
from balanced_source.severity import is_loss, severity
from support.conditions_reference import all_reasons, page

ROOT = Path(__file__).parents[3]
SOURCES = [
    file
    for folder in ("operator/src", "spark_app/src")
    for file in sorted((ROOT / folder).rglob("*.py"))
]
CALLS = {"report", "post"}
"""Methods whose first argument is a reason."""
OTHERS = {"reasons.py", "kube", "leadership.py", "executors.py"}
"""Places where a reason is defined, is that of Kubernetes, or where another thing is posted."""


def _loose(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        first = (
            node.args[:1]
            if isinstance(node.func, ast.Attribute) and node.func.attr in CALLS
            else []
        )
        named = [keyword.value for keyword in node.keywords if keyword.arg == "reason"]
        for value in (*first, *named):
            leaves = (value.body, value.orelse) if isinstance(value, ast.IfExp) else (value,)
            yield from (f"{file}:{leaf.lineno}" for leaf in leaves if _is_text(leaf))


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value != ""


def test_no_reason_is_a_loose_string() -> None:
    files = [file for file in SOURCES if not OTHERS.intersection(file.parts)]

    assert [place for file in files for place in _loose(file)] == []


def test_every_reason_is_used() -> None:
    text = "\n".join(
        file.read_text(encoding="utf-8") for file in SOURCES if file.name != "reasons.py"
    )

    unused = [r for r in all_reasons() if f"{type(r).__name__}.{r.name}" not in text]
    assert unused == []


def test_a_reason_has_one_place() -> None:
    words = [str(reason) for reason in all_reasons()]

    assert len(words) == len(set(words))


@pytest.mark.parametrize("word", ["kafka", "topic", "broker", "partition", "consumer", "offset"])
def test_generic_reasons_speak_of_no_connector(word: str) -> None:
    """Texts may name examples after "such as"."""
    said = {
        str(reason): text
        for reason in Reason
        for text in (str(reason), reason.cause, reason.remedy)
        if word in text.split("such as")[0].lower()
    }

    assert said == {}


@pytest.mark.parametrize("reason", all_reasons())
def test_every_reason_says_what_happened_and_every_problem_what_to_do(
    reason: ExplainedReason,
) -> None:
    assert reason.cause.endswith("."), "a sentence"
    assert not reason.remedy or reason.remedy.endswith(".")
    is_problem = reason.kind in (ReasonKind.OPERATION, ReasonKind.SOURCE, ReasonKind.LOSS)
    assert reason.remedy or not is_problem


@pytest.mark.parametrize("reason", all_reasons())
def test_our_reasons_keep_the_rule_for_connectors(reason: ExplainedReason) -> None:
    assert reason_fault(reason) == ""


def test_a_reason_is_its_word_wherever_it_goes() -> None:
    """Documents, statuses and logs hold text, and drivers of other releases read it."""
    assert json.dumps(KafkaReason.LOG_TRUNCATED) == '"LogTruncated"'
    assert f"{KafkaReason.LOG_TRUNCATED}" == KafkaReason.LOG_TRUNCATED == "LogTruncated"
    assert KafkaReason("LogTruncated") is KafkaReason.LOG_TRUNCATED
    # Our own bytes
    assert pickle.loads(pickle.dumps(KafkaReason.LOG_TRUNCATED)) is KafkaReason.LOG_TRUNCATED  # noqa: S301


def test_the_worst_problem_comes_first_and_those_of_the_source_rank_with_failed_discovery() -> None:
    ordered = ["InternalError", "StateCorrupt", "DiscoveryFailed", "HashCollapses"]

    assert sorted(ordered, key=severity) == ordered
    assert severity("UnknownTopic") == severity("SomethingOfAPlugIn") == severity("DiscoveryFailed")


def test_losses_are_known_as_such() -> None:
    gone = {"LogTruncated", "OffsetsSkipped", "RecordsSkipped", "SplitsLost", "SplitsSkipped"}
    known = {str(reason) for reason in all_reasons() if is_loss(reason)}
    doubts = {"OffsetsUncounted"}
    assert known == {*gone, *doubts, "TopicRecreated", "CheckpointLost", "CheckpointOlder"}


def test_a_plug_in_has_losses_of_its_own() -> None:
    class ReelReason(ExplainedReason):
        FRAMES_TORN = ("FramesTorn", ReasonKind.LOSS, "Frames are torn.", "Glue them.")

    assert is_loss("FramesTorn")
    assert is_loss(ReelReason.FRAMES_TORN)
    assert not is_loss("FramesLate")


def test_the_page_is_generated() -> None:
    """`make generate` writes it."""
    assert (ROOT / "docs/reference/conditions.md").read_text(encoding="utf-8") == page()


def test_links_of_the_page_lead_somewhere() -> None:
    folder = ROOT / "docs/reference"
    targets = [part.split(")")[0].split("#")[0] for part in page().split("](")[1:]]

    assert [target for target in targets if not (folder / target).resolve().exists()] == []


def test_no_remedy_sends_the_reader_back_to_the_message_alone() -> None:
    circular = ("as the message says", "what the message says")
    assert [r for r in all_reasons() if any(text in r.remedy for text in circular)] == []
