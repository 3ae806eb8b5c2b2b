"""What planning asks of Kafka; see `PlannerHooks`."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack
from functools import cached_property
from typing import Any

from balanced_source.api import SplitId
from balanced_source.connectors.kafka import (
    SKIPPED_OFFSETS,
    UNCOUNTED_OFFSETS,
    KafkaCluster,
    KafkaReaderSettings,
    OnDataLoss,
    SettingsCache,
    with_former,
)
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.errors import DiscoveryError
from balanced_source.host import ReaderPlan, SplitRange
from balanced_source.host.alignment import RecordTime
from balanced_source.host.ends import Look, Mark, SplitEnd
from balanced_source_adapters.kafka.admin import KafkaAdmin, clients_of_the_process
from balanced_source_spark.contract.hooks import Figure, PlannerContext, PlannerHooks
from balanced_source_spark.kafka.admission import Admission
from balanced_source_spark.kafka.broker_figures import broker_figures
from balanced_source_spark.kafka.data_loss import LossCounter, LossProblems
from balanced_source_spark.kafka.group_commits import GroupCommits
from balanced_source_spark.kafka.log_starts import LogStarts
from balanced_source_spark.kafka.open_transactions import OpenTransactions
from balanced_source_spark.kafka.options import ReadOptions
from balanced_source_spark.kafka.record_sizes import RecordSizes, sampled
from balanced_source_spark.kafka.settings import consumer_config


class KafkaHooks(PlannerHooks):
    """Clients are made when they are needed first.

    Args:
        context: of the query.
    """

    def __init__(self, context: PlannerContext[ReadOptions]) -> None:
        self._context = context
        self._parsed = SettingsCache()
        # Two caches: the newest settings and the joined ones would push each other out.
        self._parsed_known = SettingsCache()
        self._transactions = OpenTransactions(context.set_problem, self._high_watermarks)
        self._base: StreamOffset | None = None

    @cached_property
    def _admin(self) -> KafkaAdmin:
        query = self._context.query
        return KafkaAdmin(
            query.secrets,
            client_id=query.client_id,
            has_statistics=query.has_metrics,
            clients=clients_of_the_process(),
        )

    @cached_property
    def _losses(self) -> LossCounter:
        return LossCounter(self._admin.begins)

    @cached_property
    def _log_starts(self) -> LogStarts:
        return LogStarts(self._admin.begins)

    @cached_property
    def _loss_problems(self) -> LossProblems:
        return LossProblems(self._context, self._losses)

    @cached_property
    def _admission(self) -> Admission:
        return Admission(RecordSizes(self._sample))

    @cached_property
    def _group_commits(self) -> GroupCommits:
        return GroupCommits(self._commit_on)

    def ends(
        self, scope: str, split_ids: Collection[SplitId], marks: Mapping[SplitId, Mark]
    ) -> Mapping[SplitId, SplitEnd]:
        cluster = self._known().cluster(scope)
        try:
            found: Mapping[SplitId, SplitEnd] = self._admin.ends(cluster, split_ids, marks)
        except DiscoveryError as error:
            self._transactions.note(cluster, error.answers, marks)
            error.answers = self._with_starts(cluster, error.answers, marks)
            raise
        self._transactions.note(cluster, found, marks)
        return self._with_starts(cluster, found, marks)

    def _with_starts(
        self,
        cluster: KafkaCluster,
        ends: Mapping[SplitId, SplitEnd],
        marks: Mapping[SplitId, Mark],
    ) -> Mapping[SplitId, SplitEnd]:
        """Return the ends, with the starts of logs if what was deleted may be passed over."""
        return self._log_starts.joined(cluster, ends, marks) if self.may_skip() else ends

    def event_times(
        self, scope: str, millis: Mapping[SplitId, int]
    ) -> Mapping[SplitId, RecordTime | None]:
        return self._admin.records_from(self._known().cluster(scope), millis)

    def admit(
        self, held: Mapping[SplitId, int], reachable: Mapping[SplitId, int], *, may_wait: bool
    ) -> Mapping[SplitId, int]:
        return self._admission.cap(held, reachable, self._settings().limits, may_wait=may_wait)

    def asked_for(self, split_ids: Collection[SplitId]) -> Collection[SplitId]:
        return ()  # partitions are assigned, also where they follow files that readers ask for

    def may_skip(self) -> bool:
        return self._settings().on_data_loss is OnDataLoss.CONTINUE

    def note_look(self, base: StreamOffset, seen: Look) -> None:
        self._base = base
        self._transactions.keep(str(split_id[0]) for split_id in base.positions)
        if "_log_starts" in self.__dict__:
            self._log_starts.keep(str(split_id[0]) for split_id in base.positions)
        self._losses.keep(base.positions)
        self._loss_problems.note(base, seen, self._settings())

    def note_planned(self, plans: Iterable[ReaderPlan], settings: Mapping[str, Any]) -> None:
        self._losses.note(plans, self._parsed_known.of(settings))

    def note_skipped(self, ranges: Collection[SplitRange]) -> None:
        self._losses.note_skipped(ranges)

    def note_delivered(self, delivered: StreamOffset) -> None:
        if self._settings().commit_group:
            self._group_commits.note(
                {s: p for s, p in delivered.positions.items() if p is not None}
            )

    def with_former(
        self, settings: Mapping[str, Any], former: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        # Until the first look, a micro-batch that is replayed may have splits of any cluster.
        base = self._base
        held = None if base is None else {str(split_id[0]) for split_id in base.positions}
        return with_former(settings, former, held=held)

    def numbers(self) -> Mapping[str, int]:
        counts = {SKIPPED_OFFSETS: self._losses.total, UNCOUNTED_OFFSETS: self._losses.uncounted}
        return {name: count for name, count in counts.items() if count}

    def figures(self) -> Iterator[Figure]:
        return broker_figures(self._admin.statistics())

    def close(self) -> None:
        with ExitStack() as parts:
            for name in ("_admin", "_group_commits"):
                if (part := self.__dict__.get(name)) is not None:
                    parts.callback(part.close)

    def _settings(self) -> KafkaReaderSettings:
        """Returns what the newest assignment says; the defaults while there is none."""
        return self._parsed.of(self._context.settings())

    def _known(self) -> KafkaReaderSettings:
        """Returns what assignments said, with clusters that only former ones named."""
        return self._parsed_known.of(self._context.known_settings())

    def _high_watermarks(
        self, cluster: KafkaCluster, split_ids: Collection[SplitId]
    ) -> Mapping[SplitId, int]:
        return self._admin.high_watermarks(cluster, split_ids)

    def _commit_on(self, name: str, offsets: Mapping[SplitId, int]) -> None:
        settings = self._known()
        if group := settings.commit_group:
            self._admin.commit(settings.cluster(name), group, offsets)

    def _sample(self, split_id: SplitId, offset: int) -> float | None:
        cluster, query = self._known().cluster(str(split_id[0])), self._context.query
        return sampled(
            consumer_config(cluster, query.secrets, client_id=f"{query.client_id}-sizes"),
            split_id,
            offset,
        )
