"""What the reader of a task hands to the implementation that reads."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from balanced_source.api import SplitId
from balanced_source.connectors.kafka import KafkaCluster, OnDataLoss
from balanced_source.host import SplitRange
from balanced_source_spark.contract.secrets import GIVEN, NO_SECRETS
from balanced_source_spark.kafka import task_reader as module
from balanced_source_spark.kafka.settings import (
    STALL,
    LogRewrittenError,
    OffsetsLostError,
    RangeReaderSettings,
)
from balanced_source_spark.kafka.task_reader import KafkaTaskReader
from balanced_source_spark.partition import ReaderPartition
from support.world import kafka_source

READER = KafkaTaskReader(
    client_id="me", secrets=NO_SECRETS, columns=("offset",), prefetch=77, implementation="python"
)


def piece(cluster: str, number: int, *, identity: str | None = None) -> SplitRange:
    return SplitRange(split_id=(cluster, "t", number), start=0, end=9, identity=identity)


class Scene:
    """Everything around the reader; what is read are the ranges themselves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.settings: list[RangeReaderSettings] = []
        self.patience: list[float] = []
        self.asked_ids: list[Sequence[SplitRange]] = []
        self.skipping: list[Any] = []
        monkeypatch.setattr(module, "read_with_newest", self._newest)
        monkeypatch.setattr(module, "read_ranges", self._ranges)
        monkeypatch.setattr(module, "read_what_is_left", self._left)
        monkeypatch.setattr(module, "SameTopics", self._topics)
        monkeypatch.setattr(module, "task_admin", lambda *_: self)

    def ask_topic_ids(self, cluster: KafkaCluster, topics: Any) -> Any:
        raise AssertionError("only `SameTopics` asks")

    def ends(self, *_: Any) -> Mapping[SplitId, Any]:
        """No log was cut."""
        return {}

    def _newest(self, ranges: Any, settings: Any, read: Any, *, patience: float) -> Iterator[Any]:
        self.patience.append(patience)
        yield from read(ranges, settings())

    def _ranges(self, ranges: Any, settings: RangeReaderSettings) -> Iterator[Any]:
        self.settings.append(settings)
        yield from ranges

    def _left(
        self, ranges: Any, settings: Any, *, begins: Any, read: Any, skip: Any
    ) -> Iterator[Any]:
        self.skipping.append(begins)
        yield from read(ranges, settings)

    def _topics(self, **_: Any) -> Any:
        scene = self

        class Topics:
            def read(self, ranges: Any, read: Any, _interrupt: Any) -> Iterator[Any]:
                scene.asked_ids.append(ranges)
                yield from read(ranges)

        return Topics()

    def __getattr__(self, name: str) -> Any:
        return lambda *_: Mapping[SplitId, int]

    def read(self, *ranges: SplitRange, **changes: Any) -> list[Any]:
        source = kafka_source("c", "d", **changes)
        partition = ReaderPartition(
            subtask_id=3, ranges=ranges, splits=5, settings=source.reader_settings()
        )
        return list(READER.read(partition))


def test_clusters_are_read_one_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch)
    ranges = [piece("d", 0), piece("c", 1), piece("d", 2)]

    assert scene.read(*ranges) == [ranges[1], ranges[0], ranges[2]]

    assert [settings.cluster for settings in scene.settings] == ["c", "d"]
    first = scene.settings[0]
    assert first.config["client.id"] == "me-c-3"
    assert (first.columns, first.reader, first.splits) == (("offset",), 3, 5)
    assert (first.prefetch, first.implementation) == (77, "python")


@pytest.mark.parametrize(
    ("secrets", "patience"),
    [((), 0.0), ((GIVEN,), 0.0), (("password",), STALL), ((GIVEN, "password"), STALL)],
)
def test_a_refusal_is_waited_for_if_a_secret_may_change(
    monkeypatch: pytest.MonkeyPatch, secrets: tuple[str, ...], patience: float
) -> None:
    """Secrets that came with the options never change."""
    monkeypatch.setattr(module, "consumer_config", lambda *_, **__: {})
    scene = Scene(monkeypatch)
    clusters = (KafkaCluster(name="c", bootstrap_servers="b:1", secrets=secrets),)

    scene.read(piece("c", 0), clusters=clusters)

    assert scene.patience == [patience]


@pytest.mark.parametrize("identity", [None, "id"])
@pytest.mark.parametrize(
    ("loss", "consent"),
    [
        (OffsetsLostError("offset 3 does not exist any more"), "to skip them"),
        (
            LogRewrittenError("the log was cut", cuts={("t", 0): 3}),
            "to read the records that are available now",
        ),
    ],
)
def test_a_loss_that_must_not_be_skipped_says_how_to_continue(
    monkeypatch: pytest.MonkeyPatch, loss: OffsetsLostError, consent: str, identity: str | None
) -> None:
    """A micro-batch that was planned fails again at each start: no one else says it."""

    def lost(*_: Any) -> Iterator[Any]:
        yield from ()
        raise loss

    scene = Scene(monkeypatch)
    monkeypatch.setattr(module, "read_ranges", lost)

    with pytest.raises(type(loss)) as caught:
        scene.read(piece("c", 0, identity=identity), on_data_loss=OnDataLoss.FAIL)

    assert str(caught.value) == (
        f"{loss}. Set onDataLoss to Continue (without an operator: failOnDataLoss to false)"
        f" {consent}"
    )


def test_a_log_that_was_rewritten_can_be_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """With `Continue`, what is to be skipped is read from the error."""
    scene = Scene(monkeypatch)
    loss = LogRewrittenError("the log was cut", cuts={("t", 0): 3})

    def lost(*_: Any) -> Iterator[Any]:
        yield from ()
        raise loss

    monkeypatch.setattr(module, "read_ranges", lost)
    with pytest.raises(LogRewrittenError) as caught:
        scene.read(piece("c", 0), on_data_loss=OnDataLoss.CONTINUE)

    assert caught.value is loss


@pytest.mark.parametrize(
    ("policy", "identities", "compares", "skips"),
    [
        (OnDataLoss.FAIL, (None, None), False, False),
        (OnDataLoss.FAIL, (None, "id"), True, False),
        (OnDataLoss.CONTINUE, (None, None), True, True),
        (OnDataLoss.CONTINUE, ("id", "id"), True, True),
    ],
)
def test_topics_are_compared_where_their_ids_are_known(
    monkeypatch: pytest.MonkeyPatch,
    policy: OnDataLoss,
    identities: tuple[str | None, ...],
    *,
    compares: bool,
    skips: bool,
) -> None:
    """With consent, what is left of a log is asked for before it is read."""
    scene = Scene(monkeypatch)
    ranges = [piece("c", n, identity=identity) for n, identity in enumerate(identities)]

    assert scene.read(*ranges, on_data_loss=policy) == ranges

    assert bool(scene.asked_ids) is compares
    assert bool(scene.skipping) is skips
