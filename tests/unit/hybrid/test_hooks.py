"""Hooks of a hybrid source: each part answers for its own splits, which it knows by its own ids."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest

from balanced_source.api import SourceEvent
from balanced_source.host.alignment import RecordTime
from balanced_source_spark.contract.half import Query, SparkHalf
from balanced_source_spark.contract.hooks import PlannerContext, PlannerHooks
from balanced_source_spark.hybrid import hooks as module
from balanced_source_spark.hybrid.hooks import HybridHooks
from balanced_source_spark.hybrid.options import PartRead
from support.planner_context import CONTEXT


class Silent(PlannerHooks):
    """A part that does not know event times."""

    def __init__(self, context: PlannerContext[Any]) -> None:
        self.context = context
        self.asked: list[tuple[Any, ...]] = []

    def ends(self, *_: Any) -> dict[Any, Any]:
        return {}

    def scope_of(self, split_id: Any) -> str:
        return f"cluster of {split_id[0]}"

    def numbers(self) -> dict[str, int]:
        return {"blocks": 3}


class Telling(Silent):
    """A part that knows them: each record is a second newer than it was asked for."""

    def event_times(self, scope: str, millis: Any) -> Any:
        self.asked.append((scope, dict(millis)))
        return {split: RecordTime(offset=7, time=at + 1000) for split, at in millis.items()}

    def numbers(self) -> dict[str, int]:
        return {"blocks": 4, "topics": 1}


class Half(SparkHalf[Any]):
    """Makes the hooks that its part reads."""

    def read_options(self, options: Any) -> Any:
        return None

    def schema(self, read: Any) -> str:
        return "n BIGINT"

    def source(self, options: Any, choices: Any) -> Any:
        raise NotImplementedError

    def hooks(self, context: PlannerContext[Any]) -> PlannerHooks:
        made: PlannerHooks = context.query.read(context)
        return made

    def task_reader(self, query: Any) -> Any:
        raise NotImplementedError


Make = Callable[..., HybridHooks]


@pytest.fixture(name="hooks_of")
def fixture_hooks_of(monkeypatch: pytest.MonkeyPatch) -> Make:
    """Return hooks whose parts are of some classes: a, b and so on."""
    monkeypatch.setattr(module, "half_of", lambda _: Half())

    def hooks(*kinds: type[Silent], **changes: Any) -> HybridHooks:
        parts = tuple(
            PartRead(name=name, kind=name, read=kind)
            for name, kind in zip("abc", kinds, strict=False)
        )
        query: Any = Query(client_id="me", read=cast("Any", parts))
        return HybridHooks(replace(CONTEXT, query=query, **changes))

    return hooks


def part(hooks: HybridHooks, name: str) -> Any:
    """Return the hooks of a part themselves, without what explains their mistakes."""
    return hooks._parts[name]


@pytest.mark.parametrize(
    ("kinds", "tells"),
    [([Telling, Telling], True), ([Telling, Silent], False), ([Silent, Telling], False)],
)
def test_splits_are_aligned_if_all_parts_tell_event_times(
    hooks_of: Make, kinds: list[type[Silent]], *, tells: bool
) -> None:
    assert hooks_of(*kinds).tells_event_times is tells


def test_event_times_are_asked_of_the_part_of_each_split(hooks_of: Make) -> None:
    hooks = hooks_of(Telling, Telling)

    found = hooks.event_times("", {("a", "t", 0): 5, ("b", "u", 1): 6, ("a", "t", 2): 7})

    assert found == {
        ("a", "t", 0): RecordTime(offset=7, time=1005),
        ("b", "u", 1): RecordTime(offset=7, time=1006),
        ("a", "t", 2): RecordTime(offset=7, time=1007),
    }
    assert part(hooks, "a").asked == [("cluster of t", {("t", 0): 5, ("t", 2): 7})]
    assert part(hooks, "b").asked == [("cluster of u", {("u", 1): 6})]


def test_numbers_of_the_parts_are_added_up(hooks_of: Make) -> None:
    assert hooks_of(Silent, Telling).numbers() == {"blocks": 7, "topics": 1}


def test_settings_of_another_source_stay_as_they_are(hooks_of: Make) -> None:
    settings = {"kafka": {"a": 1}}

    assert hooks_of(Silent).with_former(settings, {}) == settings


@pytest.mark.parametrize("is_sent", [True, False])
def test_what_a_part_sends_to_the_enumerator_names_it(hooks_of: Make, *, is_sent: bool) -> None:
    sent: list[tuple[int, SourceEvent]] = []

    def send(subtask_id: int, event: SourceEvent) -> bool:
        sent.append((subtask_id, event))
        return is_sent

    hooks = hooks_of(Silent, Silent, send_source_event=send)

    event = SourceEvent(name="hello", payload=5)
    assert part(hooks, "b").context.send_source_event(3, event) is is_sent
    assert sent == [(3, SourceEvent(name="hello", payload={"part": "b", "payload": 5}))]
