"""Errors of the native reader, over a stand-in for its module, are those of the Python reader."""

import sys
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest

from balanced_source.host import SplitRange
from balanced_source_spark.kafka import native, renewals
from balanced_source_spark.kafka.pool import Pool
from balanced_source_spark.kafka.settings import (
    LogRewrittenError,
    OffsetsLostError,
    RangeReaderSettings,
    ReadRefusedError,
    ReadStalledError,
)

BATCHES = [pa.record_batch({"value": [b"one"]}), pa.record_batch({"value": [b"two", b"three"]})]


class NativeModule(ModuleType):
    """What the compiled module has."""

    class NativeReadError(Exception):
        """The base of the others."""

    class NativeLogRewritten(NativeReadError):  # noqa: N818 - the name in the module
        """Text, topic, partition and offset."""

    class NativeOffsetsLost(NativeReadError):  # noqa: N818 - the name in the module
        """A text."""

    class NativeReadStalled(NativeReadError):  # noqa: N818 - the name in the module
        """A text."""

    error: Exception | None = None

    def __init__(self) -> None:
        super().__init__(native.MODULE)
        self.readers: list[NativeReader] = []

    def RangeReader(self, config: dict[str, str], **settings: Any) -> "NativeReader":  # noqa: N802
        self.readers.append(NativeReader(self.error))
        return self.readers[-1]


class NativeReader:
    """Delivers two batches, then ends or fails."""

    def __init__(self, error: Exception | None) -> None:
        self._error = error
        self.begun: list[Any] = []
        self.is_closed = False
        self.forgotten: list[float] = []

    def begin(self, wanted: list[Any]) -> None:
        self.begun.append(wanted)
        self._left = list(BATCHES)

    def next_batch(self) -> pa.RecordBatch | None:
        if self._left:
            return self._left.pop(0)
        if self._error is not None:
            raise self._error
        return None

    def forget_idle(self, seconds: float) -> None:
        self.forgotten.append(seconds)

    def counters(self) -> dict[str, float]:
        return {"records": 3.0}

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> NativeModule:
    made = NativeModule()
    monkeypatch.setitem(sys.modules, native.MODULE, made)
    monkeypatch.setattr(native, "_pool", Pool[Any]())
    monkeypatch.setattr(renewals, "_topics", {})
    return made


def settings() -> RangeReaderSettings:
    return RangeReaderSettings(cluster="main", config={"sasl.password": "hunter2"})


def ranges(*, identity: str | None = "first") -> list[SplitRange]:
    split_id = ("main", "orders", 3)
    return [SplitRange(split_id=split_id, start=5, end=8, identity=identity, term=2)]


def read(asked: RangeReaderSettings, **changes: Any) -> list[bytes]:
    batches = native.read_ranges(ranges(**changes), asked)
    return [value for batch in batches for value in batch.column("value").to_pylist()]


def test_all_batches_of_the_ranges_are_delivered(module: NativeModule) -> None:
    assert read(settings()) == [b"one", b"two", b"three"]

    (reader,) = module.readers
    assert reader.begun == [[("orders", 3, 5, 8, 2)]]
    assert reader.forgotten == [native.FORGET_AFTER]
    assert not reader.is_closed, "it is kept for the next micro-batch"


def test_a_reader_that_holds_records_of_a_recreated_topic_is_not_used_again(
    module: NativeModule,
) -> None:
    for identity in ("first", "first", "second", None, "second"):
        read(settings(), identity=identity)

    assert [len(reader.begun) for reader in module.readers] == [2, 3], "unknown is no other topic"


def test_a_log_that_was_rewritten_is_named_with_its_first_other_offset(
    module: NativeModule,
) -> None:
    module.error = module.NativeLogRewritten("the log was cut", "orders", 3, 7)

    with pytest.raises(LogRewrittenError, match="the log was cut") as caught:
        read(settings())

    assert caught.value.cuts == {("orders", 3): 7}
    assert module.readers[0].is_closed


def test_each_native_error_is_one_of_ours(module: NativeModule) -> None:
    for error, kind in (
        (module.NativeOffsetsLost("offset 5 does not exist"), OffsetsLostError),
        (module.NativeReadStalled("nothing came for 120 s"), ReadStalledError),
        (module.NativeReadError("broker refused hunter2"), ReadRefusedError),
    ):
        module.error = error
        with pytest.raises(kind) as caught:
            read(settings())
        assert str(caught.value) == str(error).replace("hunter2", "***")


def test_a_read_that_is_interrupted_says_so(module: NativeModule) -> None:
    """Closing the reader ends its wait, with an error that says nothing."""
    module.error = module.NativeReadError("closed")
    asked = settings()
    asked.interrupt.set()

    with pytest.raises(ReadStalledError, match="cluster main: the read was interrupted"):
        read(asked)
