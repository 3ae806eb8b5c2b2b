"""What a connector says that says nothing of its own."""

from collections.abc import Mapping
from typing import Any

import pytest
from structlog.testing import capture_logs

from balanced_source.api import SourceEvent
from balanced_source.assigners import RoundRobinAssigner
from balanced_source.connectors.kinesis import KinesisSource, OnShardLoss
from balanced_source_adapters.kinesis import reader as reader_module
from balanced_source_spark.contract.half import Choices, Query
from balanced_source_spark.contract.hooks import PlannerHooks
from balanced_source_spark.contract.readers import ReadersHalf
from balanced_source_spark.contract.secrets import QuerySecrets
from balanced_source_spark.kinesis.half import KinesisSparkHalf, ShardHooks
from balanced_source_spark.kinesis.option_names import OPTIONS
from support.planner_context import CONTEXT
from support.tapes import Shelf, TapeHalf

SPLIT = ("main", "orders", 0)


class Silent(PlannerHooks):
    def ends(self, *_: Any) -> Mapping[Any, Any]:
        return {}


def test_hooks_are_neutral() -> None:
    hooks = Silent()

    assert hooks.scope_of(SPLIT) == "main"
    assert not hooks.tells_event_times
    assert hooks.event_times("main", {SPLIT: 5}) == {}
    assert hooks.admit({SPLIT: 1}, {SPLIT: 5}, may_wait=True) == {SPLIT: 5}
    assert hooks.asked_for([SPLIT]) is None
    assert hooks.are_all_unread([SPLIT]) is True
    assert hooks.may_cut(SPLIT) is True
    assert hooks.may_skip() is False, "losses are accepted by no one but the user"
    assert hooks.numbers() == {}
    assert list(hooks.figures()) == []


def test_an_event_that_no_one_expects_is_logged() -> None:
    with capture_logs() as lines:
        Silent().handle_source_event(3, SourceEvent(name="hello"))

    (line,) = lines
    assert (line["log_level"], line["reader"], line["name"]) == ("warning", 3, "hello")


class Plain(TapeHalf):
    """Tapes of which the defaults are asked."""

    is_replayable = ReadersHalf.is_replayable
    may_skip = ReadersHalf.may_skip


def test_splits_are_replayable_and_losses_are_not_accepted() -> None:
    half = Plain(Shelf())

    assert half.is_replayable is True
    assert half.may_skip(Query(client_id="me", read=None), {}) is False


def test_shards_of_kinesis() -> None:
    half = KinesisSparkHalf()
    hooks = half.hooks(CONTEXT)

    assert isinstance(hooks, ShardHooks)
    assert hooks.is_continued is True, "children continue a shard that was split"
    assert hooks.tells_event_times is True
    assert half.options() == OPTIONS
    source = half.source({"streams": "orders"}, Choices(assigner=RoundRobinAssigner()))
    assert isinstance(source, KinesisSource)
    assert source.streams == ("orders",)


def test_a_task_gets_the_reader_of_its_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[dict[str, Any]] = []

    def threaded(_context: Any, _client: Any, **of: Any) -> str:
        made.append(of)
        return "the reader"

    monkeypatch.setattr(reader_module, "threaded", threaded)
    half: Any = KinesisSparkHalf()
    source = half.source({"streams": "orders"}, Choices(assigner=RoundRobinAssigner()))
    query = Query(client_id="me", read=None, secrets=QuerySecrets())

    assert half.reader(query, source.reader_settings(), None) == "the reader"
    assert made[0]["on_loss"] is OnShardLoss.FAIL
