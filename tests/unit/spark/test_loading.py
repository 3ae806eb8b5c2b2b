"""What each of Spark's Python processes loads.

Every one pays for its imports at the start of a query.
"""

import pickle
import subprocess
import sys

import pytest

from balanced_source_spark.batch_reader import BalancedBatchReader
from balanced_source_spark.kafka.task_reader import KafkaTaskReader
from balanced_source_spark.options import parse_options
from balanced_source_spark.partition import ReaderPartition
from balanced_source_spark.stream_reader import BalancedStreamReader

pytestmark = pytest.mark.unit

OPTIONS = {
    "kafka.bootstrap.servers": "b:9",
    "subscribe": "t",
    "columns": "value,offset",
    "prefetchBytes": "70000",
    "reader": "native",
    "secretsDir": "/s",
}
CLIENTS = (
    "confluent_kafka",
    "structlog",
    "prometheus_client",
    "lightkube",
    "kubernetes_asyncio",
    "pydantic",
)
PLANNING = (
    "balanced_source.coordinator",
    "balanced_source_adapters.kafka.admin",
    "balanced_source_spark.planner",
)


def loaded_by(code: str, watched: tuple[str, ...]) -> list[str]:
    """Which of the watched modules a fresh interpreter has after running the code."""
    asked = f"import sys; {code}; print(*[name for name in {watched!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)  # noqa: S603
    return done.stdout.split()


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("import balanced_source_spark.stream_reader", id="pickling"),
        pytest.param(
            "import balanced_source_spark.kafka.task_reader, balanced_source_spark.kafka.native",
            id="task",
        ),
    ],
)
def test_only_the_planning_process_loads_clients_and_planning(code: str) -> None:
    assert loaded_by(code, CLIENTS + PLANNING) == []


def test_a_schema_is_made_without_arrow() -> None:
    options = {"kafka.bootstrap.servers": "b:9", "subscribe": "t"}
    code = (
        "from balanced_source_spark import data_source as d;"
        f" d.BalancedDataSource({options}).schema()"
    )
    assert loaded_by(code, ("pyarrow", *CLIENTS, *PLANNING)) == []


def test_the_watch_sees_what_is_loaded() -> None:
    assert loaded_by("import balanced_source_spark.planner", PLANNING[2:]) == list(PLANNING[2:])


def test_planning_starts_without_the_log_library_and_loads_it_beside_the_first_line() -> None:
    planning = (
        "import balanced_source_spark.planner as p, balanced_source_spark.channels.embedded, "
    )
    planning += "balanced_source_spark.kafka.hooks"
    libraries = ("structlog", "rich", "prometheus_client")
    assert loaded_by(planning, libraries) == []
    line = "p.log.info('a line'); import threading; [t.join() for t in threading.enumerate()[1:]]"
    assert "structlog" in loaded_by(f"{planning}; {line}", libraries)


def test_a_planning_process_does_not_load_what_reads_the_metadata_of_packages() -> None:
    code = (
        "import balanced_source_spark.planner, balanced_source_spark.channels.embedded;"
        " from balanced_source_adapters.connectors import installed; installed().get('kafka')"
    )
    # Python's own, and those that PySpark loads before
    assert loaded_by(f"import pyspark.sql.datasource; {code}", ("importlib.metadata",)) == []


@pytest.mark.parametrize("reader", [BalancedStreamReader, BalancedBatchReader])
def test_the_pickled_part_only_reads(
    reader: type[BalancedStreamReader] | type[BalancedBatchReader],
) -> None:
    # Made a moment ago
    measuring = pickle.loads(pickle.dumps(reader(parse_options(OPTIONS))))  # noqa: S301
    made = measuring.reader.reader
    assert isinstance(made, KafkaTaskReader)
    assert (made.columns, made.prefetch, made.implementation) == (
        ("value", "offset"),
        70_000,
        "native",
    )
    assert (made.client_id, str(made.secrets.folder)) == ("balanced-source-embedded", "/s")
    assert list(measuring.read(ReaderPartition(subtask_id=0, ranges=()))) == []
