"""Kafka's Spark half; see `SparkHalf`."""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from balanced_source.connectors.kafka import KafkaSource
from balanced_source_spark.contract.half import Choices, Query, SparkHalf
from balanced_source_spark.contract.option_table import Option
from balanced_source_spark.contract.secrets import QuerySecrets
from balanced_source_spark.kafka.client_options import query_secrets, shown_by_spark
from balanced_source_spark.kafka.option_names import OPTIONS
from balanced_source_spark.kafka.options import ReadOptions, embedded_source, read_options

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from balanced_source_spark.contract.hooks import PlannerContext
    from balanced_source_spark.kafka.hooks import KafkaHooks
    from balanced_source_spark.kafka.task_reader import KafkaTaskReader


class KafkaSparkHalf(SparkHalf[ReadOptions]):
    """Topics on one Kafka cluster or many."""

    def options(self) -> tuple[Option, ...]:
        return OPTIONS

    def read_options(self, options: Mapping[str, str]) -> ReadOptions:
        return read_options(options)

    def secrets(self, options: Mapping[str, str]) -> QuerySecrets:
        return query_secrets(options)

    def notes(self, options: Mapping[str, str]) -> tuple[str, ...]:
        return shown_by_spark(options)

    def schema(self, read: ReadOptions) -> "StructType":
        from balanced_source_spark.kafka.schema import spark_schema

        return spark_schema(read.columns)

    def source(self, options: Mapping[str, str], choices: Choices) -> KafkaSource:
        return embedded_source(options, choices)

    def task_reader(self, query: Query[ReadOptions]) -> "partial[KafkaTaskReader]":
        from balanced_source_spark.kafka.task_reader import KafkaTaskReader

        return partial(
            KafkaTaskReader,
            client_id=query.client_id,
            secrets=query.secrets,
            columns=query.read.columns,
            prefetch=query.read.prefetch,
            implementation=query.read.implementation,
        )

    def hooks(self, context: "PlannerContext[ReadOptions]") -> "KafkaHooks":
        from balanced_source_spark.kafka.hooks import KafkaHooks

        return KafkaHooks(context)
