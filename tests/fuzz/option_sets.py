"""Options of ``format("balanced")`` that a user writes by hand."""

import json
from typing import Any, Final

from hypothesis import strategies as st

from balanced_source_spark.files import option_names as files
from balanced_source_spark.kafka import option_names as kafka
from balanced_source_spark.option_names import OPTIONS
from balanced_source_spark.options import client_id, parse_options
from fuzz.judge import Judge
from fuzz.values import DURATIONS, NUMBERS, PATHS, PATTERNS, WORDS, broken
from support.hostile import HOSTILE

NAMES: Final = (
    *(option.name for option in (*OPTIONS, *kafka.OPTIONS, *files.OPTIONS)),
    "kafka.group.id",
    "kafka.security.protocol",
    "kafka.sasl.jaas.config",
    "kafka.sasl.password",
    "kafka.ssl.truststore.location",
    "kafka.client.rack",
)
OFFSETS: Final = (
    {"orders": {"0": 23, "1": -2}},
    {"orders": [0, 1]},
    ["orders"],
    {"orders": {"0": {}}},
)

numbers = st.sampled_from(NUMBERS).map(str) | st.integers().map(str)
documents = broken(OFFSETS).map(json.dumps)
lines = st.sampled_from(
    ('MODULE required username="a";', "PlainLoginModule required", "x" * 100, "a,b,,a", "key,value")
)
values: Final = (
    st.sampled_from(
        (
            *HOSTILE,
            *DURATIONS,
            *WORDS,
            *PATTERNS,
            *PATHS,
            "true",
            "TRUE",
            "latest",
            "earliest",
            "RoundRobin",
            "${env:NOWHERE}",
        )
    )
    | numbers
    | documents
    | lines
    | st.text(max_size=20)
)
base: Final = st.sampled_from(
    (
        {"kafka.bootstrap.servers": "b:1", "subscribe": "orders"},
        {"kafka.bootstrap.servers": "b:1", "subscribePattern": "o.*"},
        {"source": "orders", "namespace": "default", "uid": "u"},
        {"path": "/data/*.json", "fileFormat": "json", "schema": "id BIGINT"},
        {"assignmentDir": "/tmp/nowhere"},  # noqa: S108 - never opened
        {},
    )
)
cases: Final = st.tuples(
    base,
    st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=8), values, max_size=5),
    st.booleans(),
)


def check(case: Any, judge: Judge) -> None:
    """Parses the options, as a streaming or as a batch query."""
    given, more, is_batch = case
    options = {**given, **more}
    parsed = judge.try_(lambda: parse_options(options, is_batch=is_batch), options)
    if parsed is not None:
        judge.try_(lambda: client_id(parsed), options)
