"""The Spark half of files; see `SparkHalf`. Every Python process of a query imports this module."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from balanced_source.connectors.files import FilesSource
from balanced_source_spark.contract.half import Choices, Query, SparkHalf
from balanced_source_spark.contract.option_table import Option
from balanced_source_spark.files.inferring import check_inferred, check_inferring, known_ddl
from balanced_source_spark.files.option_names import OPTIONS
from balanced_source_spark.files.options import (
    FileReadOptions,
    check_columns,
    check_types,
    ddl_of,
    file_read_options,
    files_source,
)

if TYPE_CHECKING:
    from balanced_source_spark.contract.hooks import PlannerContext
    from balanced_source_spark.files.hooks import FilesHooks
    from balanced_source_spark.files.task_reader import FilesTaskReader


class FilesSparkHalf(SparkHalf[FileReadOptions]):
    """Files on local disks and mounted volumes, in object stores and in HDFS."""

    def options(self) -> tuple[Option, ...]:
        return OPTIONS

    def read_options(self, options: Mapping[str, str]) -> FileReadOptions:
        read = file_read_options(options)
        return replace(read, ddl=known_ddl(options, read)) if read.is_inferred else read

    def schema(self, read: FileReadOptions) -> str:
        return ddl_of(read)

    def source(self, options: Mapping[str, str], choices: Choices) -> FilesSource:
        source = files_source(options, is_batch=choices.is_batch)
        # A part of a hybrid source is read once, whatever appears in its folder later.
        source = replace(source, lists_again=choices.is_stream and not choices.is_part)
        if not file_read_options(options).is_inferred:
            return source
        check_inferring(options, choices)
        return replace(source, schema=self.read_options(options).ddl)

    def task_reader(self, query: Query[FileReadOptions]) -> "partial[FilesTaskReader]":
        check_inferred(query)
        fields = () if query.schema is None else query.schema
        check_columns(query.read, [(f.name, f.dataType.simpleString()) for f in fields])
        check_types(query.read, [(f.name, f.dataType.jsonValue()) for f in fields])
        from balanced_source_spark.files.task_reader import FilesTaskReader

        return partial(FilesTaskReader, query.read, query.schema, query.secrets)

    def hooks(self, context: "PlannerContext[FileReadOptions]") -> "FilesHooks":
        from balanced_source_spark.files.hooks import FilesHooks

        return FilesHooks(context)
