"""How the native reader is asked, and what its errors become.

What a broker makes of it is in `tests/contract/range_reader`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from balanced_source.errors import InvalidSpecError
from balanced_source.host import SplitRange
from balanced_source_spark.kafka import native, readers
from balanced_source_spark.kafka.pool import Pool
from balanced_source_spark.kafka.settings import (
    LogRewrittenError,
    OffsetsLostError,
    RangeReaderSettings,
    ReadRefusedError,
    ReadStalledError,
)
from balanced_source_spark.task_log import TELL_EVERY

SETTINGS = RangeReaderSettings(
    cluster="c", config={"client.id": "me-0", "sasl.password": "hunter2", "check.crcs": True}
)
RANGES = [
    SplitRange(split_id=("c", "t", 0), start=5, end=9, term=3),
    SplitRange(split_id=("c", "t", 1), start=None, end=2),
]
BATCHES = [pa.record_batch({"offset": [number]}) for number in range(2)]


class Reader:
    """Delivers two record batches, or fails."""

    def __init__(self, config: Any, **settings: Any) -> None:
        self.config, self.settings = config, settings
        self.begun: list[Any] = []
        self.forgotten: list[float] = []
        self.is_closed = False
        self.error: Exception | None = None
        self.before: Callable[[], None] = lambda: None

    def begin(self, wanted: Any) -> None:
        self.begun.append(wanted)
        self._left = [*BATCHES]

    def next_batch(self) -> Any:
        self.before()
        if self.error is not None:
            raise self.error
        return self._left.pop(0) if self._left else None

    def forget_idle(self, seconds: float) -> None:
        self.forgotten.append(seconds)

    def counters(self) -> dict[str, float]:
        return {"rows": 2.00049}

    def close(self) -> None:
        self.is_closed = True


class Module:
    """Stands in for the module in Rust."""

    NativeLogRewritten = type("NativeLogRewritten", (Exception,), {})
    NativeOffsetsLost = type("NativeOffsetsLost", (Exception,), {})
    NativeReadStalled = type("NativeReadStalled", (Exception,), {})
    NativeReadError = type("NativeReadError", (Exception,), {})

    def __init__(self) -> None:
        self.made: list[Reader] = []
        self.prepare: Callable[[Reader], None] = lambda _: None

    def RangeReader(self, config: Any, **settings: Any) -> Reader:  # noqa: N802 - as in Rust
        self.made.append(Reader(config, **settings))
        self.prepare(self.made[-1])
        return self.made[-1]


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Module:
    made = Module()
    monkeypatch.setattr(native, "_pool", Pool(hand_on=lambda reader: reader.forget_idle(0.0)))
    monkeypatch.setattr(native, "_logged", {})
    monkeypatch.setattr(
        native, "importlib", SimpleNamespace(import_module=lambda _: made, util=None)
    )
    return made


def read(
    settings: RangeReaderSettings = SETTINGS, ranges: Sequence[SplitRange] = RANGES
) -> list[Any]:
    return [batch.column("offset").to_pylist() for batch in native.read_ranges(ranges, settings)]


def test_ranges_are_handed_over_with_their_leaderships(module: Module) -> None:
    assert read() == [[0], [1]]

    (reader,) = module.made
    assert reader.begun == [[("t", 0, 5, 9, 3), ("t", 1, 0, 2, None)]]
    assert reader.forgotten == [native.FORGET_AFTER]
    assert reader.config["check.crcs"] == "true", "librdkafka takes texts"
    assert reader.settings["cluster"] == "c"
    assert reader.settings["columns"] == list(SETTINGS.columns)
    assert reader.settings["stall"] == SETTINGS.stall


def test_a_consumer_is_kept_for_readers_with_the_same_settings(module: Module) -> None:
    """The client id only names the reader. A consumer of another reader forgets what it fetched."""
    native._pool._max_kept = 1
    renamed = replace(SETTINGS, reader=1, config={**SETTINGS.config, "client.id": "me-1"})
    read()
    read()
    assert 0.0 not in module.made[0].forgotten
    read(renamed)
    assert 0.0 in module.made[0].forgotten
    assert len(module.made) == 1
    for other in (
        replace(SETTINGS, config={**SETTINGS.config, "sasl.password": "other"}),
        replace(SETTINGS, stall=1.0),
        replace(SETTINGS, columns=("offset",)),
        replace(SETTINGS, cluster="d"),
    ):
        count = len(module.made)
        read(other)
        assert len(module.made) == count + 1


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("NativeOffsetsLost", OffsetsLostError),
        ("NativeReadStalled", ReadStalledError),
        ("NativeReadError", ReadRefusedError),
    ],
)
def test_errors_of_the_native_reader_are_those_of_any_reader(
    module: Module, name: str, expected: type[Exception]
) -> None:
    def fail(reader: Reader) -> None:
        reader.error = getattr(module, name)("broker 1 refuses hunter2")

    module.prepare = fail

    with pytest.raises(expected, match="broker 1 refuses") as caught:
        read()

    assert ("hunter2" in str(caught.value)) is (name != "NativeReadError")
    assert module.made[0].is_closed, "no one knows what it has fetched"
    assert native.counters() == []


def test_a_log_that_was_written_again_is_named_with_its_place(module: Module) -> None:
    def fail(reader: Reader) -> None:
        reader.error = Module.NativeLogRewritten("rewritten", "t", 1, 7)

    module.prepare = fail

    with pytest.raises(LogRewrittenError, match="rewritten") as caught:
        read()
    assert caught.value.cuts == {("t", 1): 7}


def test_an_interrupted_read_says_so(module: Module) -> None:
    """The interrupt closes the reader, which then fails with an error that says nothing."""
    settings = replace(SETTINGS, interrupt=type(SETTINGS.interrupt)())

    def fail(reader: Reader) -> None:
        reader.before = settings.interrupt.set
        reader.error = Module.NativeReadError("closed")

    module.prepare = fail

    with pytest.raises(ReadStalledError, match="cluster c: the read was interrupted"):
        read(settings)
    assert module.made[0].is_closed


def test_each_consumer_logs_its_figures_once_a_minute(
    module: Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, lines = [0.0], list[tuple[Any, ...]]()
    monkeypatch.setattr(native, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(native, "tell", lambda *told, **more: lines.append((*told, more)))
    for at in (0.0, TELL_EVERY - 1, TELL_EVERY, TELL_EVERY + 1, 2 * TELL_EVERY):
        now[0] = at
        read()

    line = ("info", "native consumer", {"cluster": "c", "reader": 0, "rows": 2.0})
    assert lines == [line, line]
    assert len(module.made) == 1
    assert native.counters() == [{"rows": 2.00049}]


class Chosen:
    """Which implementation has read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, is_installed: bool) -> None:
        self.names: list[str] = []
        self.lines: list[str] = []
        readers.is_native.cache_clear()
        monkeypatch.setattr(native, "is_available", lambda: is_installed)
        monkeypatch.setattr(native, "read_ranges", lambda *_: self._note("native"))
        monkeypatch.setattr(readers, "_python_reader", lambda: lambda *_: self._note("python"))
        monkeypatch.setattr(readers, "tell", lambda _, text, **__: self.lines.append(text))

    def _note(self, name: str) -> Iterator[Any]:
        self.names.append(name)
        return iter(())

    def read(self, implementation: str, **config: Any) -> None:
        settings = replace(SETTINGS, implementation=implementation, config=config)
        list(readers.read_ranges(RANGES, settings))


@pytest.mark.parametrize(
    ("implementation", "is_installed", "expected"),
    [
        ("auto", True, "native"),
        ("auto", False, "python"),
        ("native", True, "native"),
        ("python", True, "python"),
    ],
)
def test_the_native_reader_serves_where_it_is_installed(
    monkeypatch: pytest.MonkeyPatch, implementation: str, expected: str, *, is_installed: bool
) -> None:
    chosen = Chosen(monkeypatch, is_installed=is_installed)

    chosen.read(implementation)
    chosen.read(implementation)
    chosen.read(implementation, **{readers.TOKENS: print})

    assert chosen.names == [expected, expected, "python"], "only Python calls a user's function"
    assert len(chosen.lines) == (implementation == "auto" and not is_installed)
    readers.is_native.cache_clear()


def test_a_native_reader_that_is_insisted_on_and_missing_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(InvalidSpecError, match=r"option reader: the module .* is not installed"):
        Chosen(monkeypatch, is_installed=False).read("native")
    readers.is_native.cache_clear()
