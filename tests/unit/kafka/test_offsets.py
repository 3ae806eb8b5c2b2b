"""Where reading starts and stops, resolved over made-up logs."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import pytest

from balanced_source.api import SplitId
from balanced_source.connectors.kafka import (
    EARLIEST,
    LATEST,
    AfterHistory,
    Anchor,
    AtCommit,
    AtOffset,
    AtTime,
    FromAnchor,
    FromCommit,
    FromTime,
    OffsetsInitializer,
    PerPartition,
    PerTopic,
    initializer_of,
    initializer_text,
    resolve_start,
    resolve_stop,
    void_commits,
    wish_of,
)
from balanced_source.errors import RefusedDiscoveryError
from support.kafka_lookup import FakeLookup, Log

A0: SplitId = ("c", "a", 0)
A1: SplitId = ("c", "a", 1)
B0: SplitId = ("c", "b", 0)
ALL = (A0, A1, B0)


@pytest.fixture
def lookup() -> FakeLookup:
    """A0 has offsets 0 to 10, A1 has 5 to 8, B0 is empty and begins at 7."""
    logs = {
        A0: Log(times=range(1000, 2000, 100)),
        A1: Log(first=5, times=(1500, 1400, 3000)),
        B0: Log(first=7),
    }
    return FakeLookup(logs, commits={"g": {A0: 4, A1: 2}})


@pytest.mark.parametrize(
    ("initializer", "want"),
    [
        pytest.param(
            EARLIEST, {A0: 0, A1: 5, B0: 7}, id="earliest", marks=pytest.mark.scenario("I1")
        ),
        pytest.param(LATEST, {A0: 10, A1: 8, B0: 7}, id="latest", marks=pytest.mark.scenario("I2")),
        pytest.param(FromTime(1400), {A0: 4, A1: 5, B0: 7}, id="time, else latest"),
        pytest.param(
            FromTime(1600, Anchor.EARLIEST), {A0: 6, A1: 7, B0: 7}, id="time, else earliest"
        ),
        pytest.param(FromTime(9999), {A0: 10, A1: 8, B0: 7}, id="after everything"),
        pytest.param(
            FromCommit("g", Anchor.LATEST), {A0: 4, A1: 8, B0: 7}, id="commit; A1's is gone"
        ),
        pytest.param(
            FromCommit("g", Anchor.EARLIEST), {A0: 4, A1: 5, B0: 7}, id="commit, else earliest"
        ),
        pytest.param(
            PerPartition(listed={("a", 0): AtOffset(3), ("a", 1): Anchor.LATEST}, default=EARLIEST),
            {A0: 3, A1: 8, B0: 7},
            id="listed",
        ),
        pytest.param(
            PerPartition(listed={("a", 1): AtOffset(6)}, default=FromCommit("g", Anchor.LATEST)),
            {A0: 4, A1: 6, B0: 7},
            id="listed, else the commit, else the reset",
            marks=pytest.mark.scenario("I5"),
        ),
        pytest.param(
            PerPartition(listed={("a", 0): AtTime(1900)}, default=LATEST, reset=Anchor.LATEST),
            {A0: 9, A1: 8, B0: 7},
            id="listed times",
        ),
        pytest.param(
            PerTopic(topics={"b": LATEST, "a": FromTime(1500)}, default=EARLIEST),
            {A0: 5, A1: 5, B0: 7},
            id="topics",
        ),
    ],
)
def test_every_start_is_a_real_offset(
    lookup: FakeLookup, initializer: OffsetsInitializer, want: dict[SplitId, int]
) -> None:
    """All starts are resolved at discovery.

    Upstream keeps sentinels (−2, −3) for some until the first read.
    """
    assert resolve_start(initializer, ALL, lookup) == want


class GrowingLookup(FakeLookup):
    """A record of a time that was asked for arrives behind each answer about times."""

    def at_times(self, millis: Mapping[SplitId, int]) -> dict[SplitId, int]:
        answers = super().at_times(millis)
        for split_id, moment in millis.items():
            log = self.logs[split_id]
            self.logs = {**self.logs, split_id: replace(log, times=(*log.times, moment))}
        return answers


@pytest.mark.parametrize("reset", [Anchor.EARLIEST, Anchor.LATEST])
@pytest.mark.parametrize(("commit", "start"), [(12, 12), (10, 10), (13, None)])
def test_a_commit_in_an_open_transaction_counts(
    reset: Anchor, commit: int, start: int | None
) -> None:
    """Programs that do not wait for the end of transactions commit such offsets.

    One behind these records is of a former topic, as any that does not exist.
    """
    log = Log(times=range(1000, 2000, 100), held=2)
    asked = FakeLookup({A0: log}, commits={"g": {A0: commit}})

    found = resolve_start(FromCommit("g", reset), [A0], asked)[A0]

    assert found == (start if start is not None else 0 if reset is Anchor.EARLIEST else 10)


def test_a_commit_that_comes_while_the_ends_are_looked_up_counts() -> None:
    class LivingGroup(FakeLookup):
        """Commits three records that come behind the ends."""

        def committed(self, group: str, split_ids: Collection[SplitId]) -> dict[SplitId, int]:
            self.logs = {A0: Log(times=range(1000, 2300, 100))}
            return {A0: 13}

    asked = LivingGroup({A0: Log(times=range(1000, 2000, 100))})

    assert resolve_start(FromCommit("g", Anchor.EARLIEST), [A0], asked) == {A0: 13}


@pytest.mark.parametrize(
    ("commit", "reset", "start", "is_void"),
    [
        (15, Anchor.EARLIEST, 15, False),
        (5, Anchor.EARLIEST, 10, True),
        (5, Anchor.LATEST, 20, True),
        (23, Anchor.EARLIEST, 10, True),
        (23, Anchor.LATEST, 20, True),
        (22, Anchor.LATEST, 22, False),
        (None, Anchor.LATEST, 20, False),
    ],
    ids=["there", "gone", "gone, latest", "ahead", "ahead, latest", "open", "none"],
)
def test_a_commit_outside_its_log_is_told(
    commit: int | None, reset: Anchor, start: int, *, is_void: bool
) -> None:
    """The user chose the reset for partitions without a commit, not to pass over records."""
    log = Log(first=10, times=range(1000, 2000, 100), held=2)
    asked = FakeLookup({A0: log}, commits={"g": {} if commit is None else {A0: commit}})
    initializer = FromCommit("g", reset)

    starts = resolve_start(initializer, [A0], asked)

    assert starts == {A0: start}
    assert void_commits(initializer, starts, asked) == ({A0: commit} if is_void else {})


def test_a_commit_after_the_start_was_looked_up_is_not_told() -> None:
    asked = FakeLookup({A0: Log(first=10, times=range(1000, 2000, 100))}, commits={"g": {A0: 15}})

    assert void_commits(FromCommit("g", Anchor.EARLIEST), {A0: 12}, asked) == {}


def test_void_commits_cost_a_question_only_where_a_group_is_asked() -> None:
    asked = FakeLookup({A0: Log(times=range(1000, 2000, 100))}, commits={"g": {A0: 5}})

    assert void_commits(FromCommit("g", Anchor.EARLIEST), {A0: 5}, asked) == {}
    assert asked.questions == ["g"]
    assert void_commits(FromTime(5), {A0: 5}, asked) == {}
    assert void_commits(FromCommit("g"), {A0: 5}, asked) == {}
    assert asked.questions == ["g"]


@pytest.mark.parametrize("resolve", [resolve_start, resolve_stop])
@pytest.mark.parametrize(
    "initializer",
    [
        FromTime(9999),
        PerPartition(listed={("a", 0): AtTime(9999)}, default=LATEST, reset=Anchor.LATEST),
        AfterHistory(millis=9999, may_lose=True),
    ],
)
def test_a_record_that_comes_while_its_time_is_looked_up_is_behind_the_start(
    lookup: FakeLookup, initializer: OffsetsInitializer, resolve: Any
) -> None:
    """The end of the log may be asked for only before: later it has passed that record."""
    growing = GrowingLookup(lookup.logs)

    assert resolve(initializer, [A0], growing) == {A0: 10}
    assert resolve(initializer, [A0], FakeLookup({})) == {}, "it vanished meanwhile"


@pytest.mark.scenario("I3", "H10")
def test_a_start_at_committed_offsets_without_a_reset_names_partitions_without_any(
    lookup: FakeLookup,
) -> None:
    """Nothing is guessed for a partition without a commit, or with a deleted one."""
    with pytest.raises(
        RefusedDiscoveryError, match=r"no commit of group g .* c/a/1, c/b/0, and no reset"
    ) as caught:
        resolve_start(FromCommit("g"), ALL, lookup)

    assert (caught.value.reason, caught.value.scope) == ("NoCommittedOffset", "c")


@pytest.mark.scenario("I6")
def test_listed_offsets_without_reset_refuse_the_unlisted(lookup: FakeLookup) -> None:
    """The default of the unlisted is the commit here, and there is none."""
    with pytest.raises(RefusedDiscoveryError, match="no commit of group other"):
        resolve_start(
            PerPartition(listed={("a", 0): AtOffset(1)}, default=FromCommit("other")), ALL, lookup
        )


def test_a_moment_without_a_record_can_be_refused(lookup: FakeLookup) -> None:
    with pytest.raises(
        RefusedDiscoveryError,
        match=r"no record at or after 1950 ms for c/a/0, c/b/0.*as an option"
        r" startingOffsetsByTimestampStrategy to latest",
    ) as caught:
        resolve_start(FromTime(1950, None), ALL, lookup)

    assert caught.value.reason == "NoOffsetForTimestamp"


@pytest.mark.parametrize("offset", [4, 9])
def test_a_listed_offset_that_does_not_exist_is_refused_with_the_range(
    lookup: FakeLookup, offset: int
) -> None:
    initializer = PerPartition(listed={("a", 1): AtOffset(offset)}, default=EARLIEST)

    with pytest.raises(RefusedDiscoveryError, match=rf"c/a/1 has offsets 5 to 8, not {offset}"):
        resolve_start(initializer, ALL, lookup)


def test_a_stop_may_lie_in_the_future_or_behind(lookup: FakeLookup) -> None:
    stop = PerPartition(listed={("a", 0): AtOffset(99), ("a", 1): AtOffset(1)}, default=LATEST)

    assert resolve_stop(stop, ALL, lookup) == {A0: 99, A1: 1, B0: 7}


@pytest.mark.scenario("I10")
def test_a_stop_at_commits_needs_them(lookup: FakeLookup) -> None:
    """A committed start or stop without any commit is an error that names the partitions."""
    with pytest.raises(RefusedDiscoveryError, match="stoppingOffsets: no commit of group g"):
        resolve_stop(FromCommit("g"), ALL, lookup)


def test_partitions_that_vanish_meanwhile_are_left_out(lookup: FakeLookup) -> None:
    gone: SplitId = ("c", "gone", 0)

    for initializer in (EARLIEST, LATEST, FromCommit("g", Anchor.LATEST), FromTime(1)):
        assert gone not in resolve_start(initializer, [A0, gone], lookup)
    assert resolve_stop(LATEST, [A0, gone], lookup) == {A0: 10}


def test_all_partitions_are_asked_about_at_once(lookup: FakeLookup) -> None:
    many = {("c", "t", p): Log(times=(1,)) for p in range(1000)}
    lookup.logs = many

    resolve_start(FromTime(5), many, lookup)

    assert lookup.questions.count("times") == 1
    assert len(lookup.questions) <= 5


def test_offsets_minus_2_and_minus_1_mean_earliest_and_latest_as_in_spark() -> None:
    assert (wish_of(-2), wish_of(-1), wish_of(0)) == (Anchor.EARLIEST, Anchor.LATEST, AtOffset(0))
    assert FromAnchor(Anchor.EARLIEST) == EARLIEST


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (LATEST, '{"fromAnchor":{"anchor":"Latest"}}'),
        (FromCommit("g", Anchor.EARLIEST), '{"fromCommit":{"group":"g","reset":"Earliest"}}'),
        (FromTime(7), '{"fromTime":{"millis":7,"reset":"Latest"}}'),
        (
            PerPartition(
                listed={("u", 1): AtOffset(3), ("t", 0): AtTime(4), ("t", 1): AtCommit("g")},
                default=LATEST,
            ),
            """{"perPartition":{"default":{"fromAnchor":{"anchor":"Latest"}},"listed":[[["t",0],{"time":{"millis":4}}],
            [["t",1],{"commit":{"group":"g"}}],[["u",1],{"offset":{"offset":3}}]],"reset":null}}""",
        ),
        (
            PerTopic(topics={"b": EARLIEST, "a": LATEST}, default=EARLIEST),
            """{"perTopic":{"default":{"fromAnchor":{"anchor":"Earliest"}},
            "topics":[["a",{"fromAnchor":{"anchor":"Latest"}}],["b",{"fromAnchor":{"anchor":"Earliest"}}]]}}""",
        ),
    ],
)
def test_the_text_of_an_initializer_never_changes(value: OffsetsInitializer, text: str) -> None:
    """Statuses hold it.

    Another text would count as another end, and the source would be refused.
    """
    assert initializer_text(value) == "".join(text.split())
    assert initializer_of(initializer_text(value)) == value


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "{",
            "7",
            "null",
            "[]",
            "{}",
            '"Latest"',
            '{"offset":{"offset":3}}',
            '{"fromAnchor":{"anchor":"Middle"}}',
        ),
        *(
            '{"fromAnchor":{}}',
            '{"fromTime":{"millis":1,"more":2}}',
            '{"a":{},"b":{}}',
            "[" * 100_000,
        ),
    ],
)
def test_a_text_that_describes_no_offsets_is_an_error_in_words(text: str) -> None:
    with pytest.raises(ValueError, match="describes no offsets"):
        initializer_of(text)
