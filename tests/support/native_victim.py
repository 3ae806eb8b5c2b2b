"""Calls the native reader in a process of its own, so that a crash is seen instead of shared."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any, Final

import pyarrow as pa

from balanced_source.connectors.kafka import KafkaCluster
from balanced_source_adapters.kafka.config import NoSecrets
from balanced_source_spark.kafka.native import MODULE, _text
from balanced_source_spark.kafka.settings import RangeReaderSettings, consumer_config

DEADLINE: Final = 90.0
"""Seconds for one call; far more than any may take."""

Step = tuple[str, Mapping[str, Any]]
"""What to do, and with which arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a step: a value, or an exception.

    Attributes:
        rows: partition and offset of each row, in the order in which they came.
        ended: whether the reader said that there is nothing more.
        error: class of the exception; None: there was none.
        is_sound: whether a program can handle it, unlike the panic of a native library.
        text: of the exception.
    """

    rows: tuple[tuple[int, int], ...] = ()
    ended: bool = False
    error: str | None = None
    is_sound: bool = True
    text: str = ""


class CrashedError(AssertionError):
    """The process has died, or does not answer."""


class Victim:
    """A process that owns one native reader at a time."""

    def __init__(self, bootstrap: str) -> None:
        context = get_context("spawn")
        self._here, there = context.Pipe()
        self._process = context.Process(target=_serve, args=(there, bootstrap), daemon=True)
        self._process.start()
        there.close()

    @property
    def is_alive(self) -> bool:
        return self._process.is_alive()

    def do(self, steps: Sequence[Step]) -> list[Outcome]:
        """Take steps, with no reader at first."""
        try:
            self._here.send(steps)
            if not self._here.poll(DEADLINE):
                raise CrashedError(f"no answer within {DEADLINE:.0f} s: {steps}")
            outcomes: list[Outcome] = self._here.recv()
        except (EOFError, OSError) as error:
            self._process.join(10)
            raise CrashedError(f"exit code {self._process.exitcode} after {steps}") from error
        return outcomes

    def close(self) -> None:
        self._process.kill()
        self._process.join(10)
        self._here.close()


@dataclass
class _Scene:
    """The reader under test; every verb is a step."""

    bootstrap: str
    reader: Any = None
    dropped: list[Any] = field(default_factory=list)

    def new(self, **changes: Any) -> Outcome:
        native = __import__(MODULE)
        cluster = KafkaCluster(
            name="main", bootstrap_servers=self.bootstrap, properties={"log_level": "0"}
        )
        settings = RangeReaderSettings(
            cluster="main", config=consumer_config(cluster, NoSecrets(), client_id="victim")
        )
        config: Any = {k: _text(v) for k, v in settings.consumer(queue_per_split=True).items()}
        extra = changes.pop("config", {})
        config = {**config, **extra} if isinstance(extra, dict) else extra
        usual = {
            "cluster": "main",
            "columns": ["partition", "offset"],
            "max_rows": 64,
            "max_bytes": 1 << 20,
        }
        self.reader = native.RangeReader(config, **{**usual, "stall": 2.0, **changes})
        return Outcome()

    def begin(self, ranges: Any) -> Outcome:
        self.reader.begin(ranges)
        return Outcome()

    def read(self, batches: int = 1 << 30) -> Outcome:
        rows: list[tuple[int, int]] = []
        try:
            for _ in range(batches):
                if (batch := self.reader.next_batch()) is None:
                    return Outcome(rows=tuple(rows), ended=True)
                table = pa.record_batch(batch)
                pa.record_batch(batch)  # a second view of the same rows
                rows += [
                    (row["partition"], row["offset"])
                    for row in table.to_pylist()
                    if "offset" in row
                ]
        except Exception as error:  # noqa: BLE001 - rows that came before count, too
            return Outcome(rows=tuple(rows), error=type(error).__name__, text=str(error))
        return Outcome(rows=tuple(rows))

    def batch_outlives(self) -> Outcome:
        """What was handed out stays valid when its reader is gone."""
        batch = self.reader.next_batch()
        self.reader.close()
        self.reader = None
        if batch is not None:
            pa.record_batch(batch).validate(full=True)
        return Outcome()

    def counters(self) -> Outcome:
        self.reader.counters()
        self.reader.statistics()
        return Outcome()

    def forget_idle(self, seconds: Any) -> Outcome:
        self.reader.forget_idle(seconds)
        return Outcome()

    def close(self) -> Outcome:
        self.reader.close()
        return Outcome()

    def drop(self) -> Outcome:
        self.reader = None
        return Outcome()

    def together(self, steps: Sequence[Step]) -> Outcome:
        """Each step in a thread of its own, at once."""
        bad: list[Outcome] = []

        def run(step: Step) -> None:
            if not (outcome := self.take(step)).is_sound:
                bad.append(outcome)

        threads = [threading.Thread(target=run, args=(step,)) for step in steps]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return bad[0] if bad else Outcome()

    def take(self, step: Step) -> Outcome:
        verb: Callable[..., Outcome] = getattr(self, step[0])
        try:
            return verb(**step[1])
        except BaseException as error:  # noqa: BLE001 - a panic is a BaseException
            return Outcome(
                error=type(error).__name__, is_sound=isinstance(error, Exception), text=str(error)
            )


def _serve(pipe: Connection, bootstrap: str) -> None:
    while True:
        try:
            steps = pipe.recv()
        except EOFError:
            return
        scene = _Scene(bootstrap)
        pipe.send([scene.take(step) for step in steps])
