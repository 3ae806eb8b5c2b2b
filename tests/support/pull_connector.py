"""Lists of numbers as an installed connector.

Readers ask for lists, and talk with the enumerator.
"""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from balanced_source.api import (
    AsyncCall,
    Caller,
    CallExecutor,
    Connector,
    Identity,
    NamedSecrets,
    SecretReader,
    SourceEvent,
    SplitEnumeratorContext,
    SplitId,
)
from balanced_source.connectors.pull import PullingSplitEnumerator, PullState
from balanced_source.host import ReaderPlan
from balanced_source.host.ends import Mark, SplitEnd
from balanced_source_operator.contract.base import Model
from balanced_source_operator.contract.half import Common, OperatorHalf, Texts
from balanced_source_spark.contract.half import Choices, Query, SparkHalf
from balanced_source_spark.contract.hooks import PlannerContext, PlannerHooks
from balanced_source_spark.partition import ReaderPartition
from support import installed
from support.pull_source import NumberLists, Numbers

KIND: Final = "numberlists"
STEP: Final = 50
"""Numbers of a list that one micro-batch reads at most, so that a list needs several."""

ASKED: Final = "NUMBERLISTS_ASKED"
"""Variable with the path of a file: reader, host and zone of each request for splits."""

SAID: Final = "said"
HEARD: Final = "heard"


def register(folder: Path) -> None:
    """Make a folder that registers the connector where it is on the path."""
    installed.register(folder, KIND, f"{__name__}:NumberListsConnector")


class TalkingEnumerator(PullingSplitEnumerator[Numbers]):
    """Answers each event of a reader with the same payload, and notes who asks for splits."""

    def handle_split_requests(
        self, counts: Mapping[int, int], requester_hostname: str | None
    ) -> None:
        if path := os.environ.get(ASKED):
            with Path(path).open("a") as log:
                for subtask_id in counts:
                    zone = self.context.zone_of(subtask_id)
                    log.write(f"{subtask_id} {requester_hostname} {zone}\n")
        super().handle_split_requests(counts, requester_hostname)

    def handle_source_event(self, subtask_id: int, event: SourceEvent) -> None:
        self.context.send_event_to_reader(
            subtask_id, SourceEvent(name=HEARD, payload=event.payload)
        )


class ServedLists(NumberLists):
    """As the connector makes it."""

    @property
    def kind(self) -> str:
        return KIND

    def create_enumerator(self, context: SplitEnumeratorContext[Numbers]) -> TalkingEnumerator:
        return TalkingEnumerator(context, self, PullState())

    def restore_enumerator(
        self, context: SplitEnumeratorContext[Numbers], state: PullState[Numbers]
    ) -> TalkingEnumerator:
        return TalkingEnumerator(context, self, state)

    def reader_settings(self) -> Mapping[str, Any]:
        return {KIND: {"length": self.length}}


class NumberListsConnector(Connector):
    kind = KIND
    operator = f"{__name__}:NumberListsOperatorHalf"
    spark = f"{__name__}:NumberListsSparkHalf"

    def executor(self, secrets: SecretReader, *, caller: Caller, client_id: str) -> CallExecutor:
        def execute(call: AsyncCall) -> list[Numbers]:
            count, length = map(int, str(getattr(call, "scope", "")).split("x"))
            return NumberLists(count=count, length=length).execute(call)

        return execute

    def identity_of(self, call: AsyncCall) -> Identity:
        return NamedSecrets()


class NumberListsSpec(Model):
    """Which lists."""

    count: int
    """How many."""

    length: int
    """Numbers of each."""


class NumberListsOperatorHalf(OperatorHalf[NumberListsSpec]):
    spec = NumberListsSpec
    description = "Lists of numbers."

    def to_source(
        self, spec: NumberListsSpec, common: Common, texts: Texts, *, field: str
    ) -> ServedLists:
        return ServedLists(count=spec.count, length=spec.length, ahead=2)


class NumberListsSparkHalf(SparkHalf[str]):
    def read_options(self, options: Mapping[str, str]) -> str:
        return options.get("eventlog", "")

    def schema(self, read: str) -> str:
        return "list STRING, number BIGINT"

    def source(self, options: Mapping[str, str], choices: Choices) -> ServedLists:
        return ServedLists(count=int(options["count"]), length=int(options["length"]), ahead=2)

    def task_reader(self, query: Query[str]) -> "Callable[[], NumberListsReader]":
        return NumberListsReader

    def hooks(self, context: PlannerContext[str]) -> "NumberListsHooks":
        return NumberListsHooks(context)


class NumberListsReader:
    def read(self, partition: ReaderPartition) -> Iterator[pa.RecordBatch]:
        for piece in partition.ranges:
            numbers = list(range(int(piece.start or 0), int(piece.end or 0)))
            yield pa.RecordBatch.from_pydict(
                {"list": [str(piece.split_id[1])] * len(numbers), "number": numbers}
            )


class NumberListsHooks(PlannerHooks):
    """Says something for its first reader in each micro-batch, and writes down what it hears."""

    def __init__(self, context: PlannerContext[str]) -> None:
        self._context = context
        self._said = 0

    def ends(
        self, scope: str, split_ids: Collection[SplitId], marks: Mapping[SplitId, Mark]
    ) -> Mapping[SplitId, SplitEnd]:
        length = int(self._context.known_settings()[KIND]["length"])
        return {split_id: SplitEnd(end=length) for split_id in split_ids}

    def admit(
        self, held: Mapping[SplitId, int], reachable: Mapping[SplitId, int], *, may_wait: bool
    ) -> Mapping[SplitId, int]:
        return {s: min(end, held[s] + STEP) for s, end in reachable.items()}

    def note_planned(self, plans: Iterable[ReaderPlan], settings: Mapping[str, Any]) -> None:
        """Each event is answered in its own epoch, so saying something there would never end."""
        event = SourceEvent(name=SAID, payload=f"{os.getpid()} {self._said + 1}")
        if any(plan.ranges for plan in plans) and self._context.send_source_event(0, event):
            self._said += 1
            self._note(SAID, event)

    def handle_source_event(self, subtask_id: int, event: SourceEvent) -> None:
        self._note(event.name, event)

    def _note(self, name: str, event: SourceEvent) -> None:
        if path := self._context.query.read:
            with Path(path).open("a") as log:
                log.write(f"{name} {event.payload}\n")
