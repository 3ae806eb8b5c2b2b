"""What a connector raises by mistake on the Spark side ends as a sentence.

Which connector, where, and what to do.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import pytest

from balanced_source.api import SourceEvent, SplitId
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.errors import (
    ConnectorError,
    FatalProblemError,
    InvalidSpecError,
    RefusedDiscoveryError,
    TransientDiscoveryError,
)
from balanced_source.host.ends import Look, Mark, SplitEnd
from balanced_source_adapters.mistakes import explained
from balanced_source_spark.contract.checked_hooks import hooks_of
from balanced_source_spark.contract.hooks import PlannerContext, PlannerHooks
from balanced_source_spark.contract.readers import ReaderHooks
from balanced_source_spark.options import parse_options
from support.planner_context import CONTEXT

SPLIT: SplitId = ("s", "a")


class Hooks(PlannerHooks):
    """All of them do the same."""

    def __init__(self, act: Callable[[], Any]) -> None:
        self.act = act

    def ends(
        self, scope: str, split_ids: Collection[SplitId], marks: Mapping[SplitId, Mark]
    ) -> Mapping[SplitId, SplitEnd]:
        made: Mapping[SplitId, SplitEnd] = self.act()
        return made

    def event_times(self, scope: str, millis: Mapping[SplitId, int]) -> Any:
        return self.act()

    def admit(self, held: Any, reachable: Any, *, may_wait: bool) -> Any:
        return self.act()

    def may_skip(self) -> bool:
        return bool(self.act())

    def note_look(self, base: StreamOffset, seen: Look) -> None:
        self.act()

    def note_planned(self, plans: Iterable[Any], settings: Mapping[str, Any]) -> None:
        self.act()

    def note_skipped(self, ranges: Collection[Any]) -> None:
        self.act()

    def note_delivered(self, delivered: StreamOffset) -> None:
        self.act()

    def with_former(self, settings: Mapping[str, Any], former: Mapping[str, Any]) -> Any:
        return self.act()

    def handle_source_event(self, subtask_id: int, event: SourceEvent) -> None:
        self.act()

    def close(self) -> None:
        self.act()


class Half:
    """Makes these hooks."""

    def __init__(self, made: Any) -> None:
        self.made = made

    def hooks(self, context: PlannerContext[None]) -> Any:
        if isinstance(self.made, Exception):
            raise self.made
        return self.made


def checked(made: Any, connector: str = "files") -> PlannerHooks:
    half: Any = Half(made)
    return hooks_of(half, CONTEXT, connector=connector)


def failing(error: Exception) -> Callable[[], Any]:
    def act() -> Any:
        raise error

    return act


CALLS: Mapping[str, Callable[[PlannerHooks], Any]] = {
    "admit": lambda hooks: hooks.admit({SPLIT: 1}, {SPLIT: 2}, may_wait=True),
    "may_skip": lambda hooks: hooks.may_skip(),
    "note_look": lambda hooks: hooks.note_look(StreamOffset(), Look()),
    "note_planned": lambda hooks: hooks.note_planned([], {}),
    "note_skipped": lambda hooks: hooks.note_skipped([]),
    "note_delivered": lambda hooks: hooks.note_delivered(StreamOffset()),
    "with_former": lambda hooks: hooks.with_former({}, {}),
    "handle_source_event": lambda hooks: hooks.handle_source_event(0, SourceEvent(name="e")),
    "close": lambda hooks: hooks.close(),
}
ASKING: Mapping[str, Callable[[PlannerHooks], Any]] = {
    "ends": lambda hooks: hooks.ends("s", [SPLIT], {}),
    "event_times": lambda hooks: hooks.event_times("s", {SPLIT: 0}),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_hook_that_fails_is_named_with_its_connector_and_package(name: str) -> None:
    hooks = checked(Hooks(failing(KeyError("url"))))

    with pytest.raises(ConnectorError) as caught:
        CALLS[name](hooks)

    assert (
        str(caught.value)
        == f"connector 'files' of balanced-source failed in {name}: KeyError: 'url'. Report this to"
        " the authors of the package, with the traceback from the log"
    )
    assert isinstance(caught.value.__cause__, KeyError), "the log shows it"


@pytest.mark.parametrize("name", ASKING)
def test_a_hook_that_asks_servers_is_asked_again(name: str) -> None:
    """A connection that breaks raises what its client raises.

    That must not end a query that waits for no one.
    """
    hooks = checked(Hooks(failing(ConnectionResetError("peer"))))

    with pytest.raises(
        TransientDiscoveryError, match=f"failed in {name}: ConnectionResetError: peer"
    ) as caught:
        ASKING[name](hooks)

    assert caught.value.scope == "s"


@pytest.mark.parametrize("name", [*CALLS, *ASKING])
@pytest.mark.parametrize(
    "error", [RefusedDiscoveryError("no", scope="s"), FatalProblemError("gone", reason="X")]
)
def test_a_deliberate_error_of_a_hook_is_passed_on(name: str, error: Exception) -> None:
    hooks = checked(Hooks(failing(error)))

    with pytest.raises(type(error)) as caught:
        {**CALLS, **ASKING}[name](hooks)

    assert caught.value is error


@pytest.mark.parametrize("name", ["admit", "with_former", *ASKING])
def test_a_hook_that_returns_no_mapping_is_named(name: str) -> None:
    hooks = checked(Hooks(lambda: None))

    with pytest.raises(
        (ConnectorError, TransientDiscoveryError), match=f"failed in {name}.* returned a NoneType"
    ):
        {**CALLS, **ASKING}[name](hooks)


@pytest.mark.parametrize("made", [None, RuntimeError("no")])
def test_a_half_that_makes_no_hooks_is_named(made: Any) -> None:
    with pytest.raises(
        ConnectorError, match="connector 'files' of balanced-source failed in hooks: "
    ):
        checked(made)


def test_a_connector_that_is_not_installed_any_more_is_named_all_the_same() -> None:
    with pytest.raises(
        ConnectorError, match="connector 'gone' of an unknown package failed in may_skip"
    ):
        checked(Hooks(failing(ValueError("x"))), "gone").may_skip()


def test_hooks_without_a_mistake_are_what_they_are() -> None:
    class OfReaders(ReaderHooks):
        is_continued = True

        def ends(self, *_: Any) -> Mapping[SplitId, SplitEnd]:
            return {SPLIT: SplitEnd(end=3)}

    hooks: Any = checked(OfReaders())

    assert hooks.ends("s", [SPLIT], {}) == {SPLIT: SplitEnd(end=3)}
    assert (hooks.knows_ends, hooks.is_continued, hooks.scope_of(SPLIT)) == (True, True, "s")
    plain: Any = checked(ReaderHooks())
    assert not plain.knows_ends


def test_an_error_outside_a_connector_is_not_blamed_on_it() -> None:
    """A log that shows variables looks for attributes, also while it shows a mistake."""
    assert not hasattr(checked(Hooks(dict)), "__rich_repr__")


def test_a_default_hook_costs_nothing() -> None:
    """`scope_of` is asked for every split of every micro-batch."""
    hooks = Hooks(dict)

    assert checked(hooks).scope_of == hooks.scope_of


def test_options_that_a_connector_stumbles_over_are_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Stumbles:
        def options(self) -> None:
            return None

        def notes(self, options: Mapping[str, str]) -> tuple[str, ...]:
            return (options["folders"],)

    monkeypatch.setattr("balanced_source_spark.options.half_of", lambda _: Stumbles())

    with pytest.raises(ConnectorError, match=r"failed in notes: KeyError: 'folders'\. Report this"):
        parse_options({"connector": "files"})


def test_errors_of_this_project_say_what_to_do_themselves() -> None:
    with pytest.raises(InvalidSpecError, match="f: no"), explained("files", "schema"):
        raise InvalidSpecError("no", field="f")


HELD = {("s", "a"): 5, ("s", "b"): 7}
REACHABLE = {("s", "a"): 9, ("s", "b"): 7}


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        pytest.param({("s", "a"): 9}, "('s', 'b') is missing", id="a split is left out"),
        pytest.param({**HELD, ("s", "c"): 1}, "('s', 'c') is not held", id="a foreign split"),
        pytest.param({**HELD, ("s", "a"): 4}, "is 4: return a whole number from 5 to 9", id="back"),
        pytest.param({**HELD, ("s", "a"): 10}, "is 10", id="beyond what is there"),
        pytest.param({**HELD, ("s", "b"): 8}, "from 7 to 7", id="a split without news"),
        pytest.param({**HELD, ("s", "a"): None}, "is None", id="nothing"),
        pytest.param({**HELD, ("s", "a"): 6.0}, "is 6.0", id="no whole number"),
        pytest.param({**HELD, ("s", "b"): True}, "is True", id="no number"),
    ],
)
def test_wrong_positions_end_the_query_before_they_are_logged(answer: Any, said: str) -> None:
    """Each would read records twice or never."""
    hooks = checked(Hooks(lambda: answer), "lines")
    with pytest.raises(ConnectorError, match=r"'lines' .* failed in admit") as raised:
        hooks.admit(HELD, REACHABLE, may_wait=True)
    assert said in str(raised.value)


@pytest.mark.parametrize("answer", [HELD, REACHABLE, {**HELD, ("s", "a"): 7}])
def test_positions_between_held_and_reachable_are_taken(answer: Mapping[SplitId, int]) -> None:
    hooks = checked(Hooks(lambda: answer), "lines")
    assert hooks.admit(HELD, REACHABLE, may_wait=True) == answer


def test_a_position_behind_an_unknown_end_stays() -> None:
    hooks = checked(Hooks(lambda: {SPLIT: 5}), "lines")
    assert hooks.admit({SPLIT: 5}, {}, may_wait=True) == {SPLIT: 5}


@pytest.mark.parametrize(
    "answer",
    [
        {SPLIT: 5},
        {SPLIT: None},
        {SPLIT: SplitEnd(end=5.5)},  # type: ignore[arg-type]
        {SPLIT: SplitEnd(end=True)},
        {SPLIT: SplitEnd(end=float("nan"))},  # type: ignore[arg-type]
    ],
)
def test_wrong_ends_count_as_silence_of_the_servers(answer: Any) -> None:
    hooks = checked(Hooks(lambda: answer), "lines")
    with pytest.raises(TransientDiscoveryError, match="failed in ends"):
        hooks.ends("s", [SPLIT], {})


def test_wrong_event_times_count_as_silence_of_the_servers() -> None:
    hooks = checked(Hooks(lambda: {SPLIT: 5}), "lines")
    with pytest.raises(TransientDiscoveryError, match="return a RecordTime or None"):
        hooks.event_times("s", {SPLIT: 1})


class UnspeakableError(Exception):
    """An error whose text cannot be made."""

    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize("error", [SystemExit(3), UnspeakableError()])
def test_whatever_a_hook_raises_is_a_sentence(error: BaseException) -> None:
    def fail() -> None:
        raise error

    hooks = checked(Hooks(fail), "lines")
    with pytest.raises(ConnectorError, match=type(error).__name__):
        hooks.admit(HELD, REACHABLE, may_wait=True)


@pytest.mark.parametrize(
    ("error", "said"),
    [(MemoryError(), "MemoryError. Report"), (ValueError("no."), "ValueError: no. Report")],
)
def test_a_sentence_about_an_error_ends_once(error: Exception, said: str) -> None:
    with pytest.raises(ConnectorError, match=f"failed in may_skip: {re.escape(said)}"):
        checked(Hooks(failing(error))).may_skip()


def test_the_log_has_the_traceback_of_a_mistake_once_and_without_variables(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Servers are asked again every few seconds, and variables may hold passwords."""

    def fail() -> None:
        password = "hunter2"  # noqa: S105 - what must not be shown
        raise ValueError(len(password))

    hooks = checked(Hooks(fail), "leaking")
    for _ in range(3):
        with pytest.raises(TransientDiscoveryError):
            hooks.ends("s", [SPLIT], {})

    said = capsys.readouterr().out
    assert said.count("Traceback (most recent call last)") == 1
    assert "hunter2" not in said
