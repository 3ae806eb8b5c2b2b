"""Options that every kind of source has."""

from typing import Final

from balanced_source_spark.contract.option_table import Option

_ASSIGNS: Final = "Who assigns"
_READ: Final = "What is read"
_BATCHES: Final = "Micro-batches"
_RUNS: Final = "How it runs"

OPTIONS: Final = (
    Option(
        name="source",
        group=_ASSIGNS,
        meaning=(
            "Name of a BalancedSource: an operator assigns. For drivers that the operator starts."
        ),
    ),
    Option(
        name="namespace",
        group=_ASSIGNS,
        default="`default`",
        meaning="Namespace of the BalancedSource.",
    ),
    Option(
        name="uid",
        group=_ASSIGNS,
        meaning=(
            "Uid of the BalancedSource. Documents of another one are rejected. Absent: not checked."
        ),
    ),
    Option(
        name="assignmentDir",
        group=_ASSIGNS,
        meaning="Folder of local mode (`balanced-source local`), which assigns.",
    ),
    Option(
        name="host",
        group=_ASSIGNS,
        default="`0`",
        meaning=(
            "Number of this query's host, if several applications read the source. The operator"
            " tells its drivers by the variable `BALANCED_SOURCE_HOST`."
        ),
    ),
    Option(
        name="formerHosts",
        group=_ASSIGNS,
        meaning=(
            "Other hosts of the source whose Spark checkpoints hold splits, such as `1,2`. If the"
            " source was deleted and is applied again with fewer hosts, they are started once more"
            " and hand over. The packaged application looks for them by itself."
        ),
    ),
    Option(
        name="zone",
        group=_ASSIGNS,
        default="the variable `BALANCED_SOURCE_ZONE`",
        meaning=(
            "Availability zone of the driver. It goes with requests for splits, so that a source"
            " whose splits lie in zones can give them to a host nearby."
        ),
    ),
    Option(
        name="connector",
        group=_ASSIGNS,
        default="`kafka`",
        meaning=(
            "Kind of the source, if it is not Kafka: the name that an installed connector"
            " registers."
        ),
    ),
    Option(
        name="parallelism",
        group=_ASSIGNS,
        default="`1`",
        is_embedded=True,
        meaning="Number of readers, at most 10,000, if the driver assigns by itself.",
    ),
    Option(
        name="stateDir",
        group=_ASSIGNS,
        is_embedded=True,
        meaning=(
            "Folder for the enumerator state, if the driver assigns by itself and its readers ask"
            " for splits. It keeps the Spark checkpoint small, belongs to it, and must outlive the"
            " driver."
        ),
    ),
    Option(
        name="strategy",
        group=_ASSIGNS,
        default="`RoundRobin`",
        is_embedded=True,
        meaning="`RoundRobin`, `LoadAware` or `Hash`, if the driver assigns by itself.",
    ),
    Option(
        name="startTimeoutSeconds",
        group=_ASSIGNS,
        default="`60`; with `source` or `assignmentDir`: `300`",
        meaning=(
            "Seconds that a new query waits for the first assignment, and for servers that do not"
            " answer, before it fails. A streaming query that has begun waits without a limit and"
            " logs why. Rejected settings fail at once."
        ),
    ),
    Option(
        name="acceptCheckpointOf",
        group=_ASSIGNS,
        meaning=(
            "Namespace and name (`shop/orders-old`) of another source whose Spark checkpoint this"
            " query continues from."
        ),
    ),
    Option(
        name="secretsDir",
        group=_READ,
        meaning=(
            "Folder with secrets: one file per property, named like the property, or one folder per"
            " Secret with such files. Driver and executors need it. A changed file takes effect"
            " while the query runs."
        ),
    ),
    Option(
        name="maxRecordsPerReader",
        group=_BATCHES,
        meaning=(
            "If a reader's share of a micro-batch exceeds this many records, the surplus is "
            "split into ranges that other readers read."
        ),
    ),
    Option(
        name="alignmentMaxDrift",
        group=_BATCHES,
        meaning=(
            "Event-time alignment: how far a split may be ahead of the slowest active one, as a"
            " duration."
        ),
    ),
    Option(
        name="alignmentIdleTimeout",
        group=_BATCHES,
        default="`30s`",
        meaning="Time after which a split that is read to its end no longer holds back the others.",
    ),
    Option(
        name="alignmentGroup",
        group=_BATCHES,
        meaning="Sources of the namespace with the same group wait for each other. Needs `source`.",
    ),
    Option(
        name="metricsPort",
        group=_RUNS,
        meaning=(
            "Port on which the driver serves Prometheus metrics of the query. Absent: the port that"
            " the operator names, or none without an operator."
        ),
    ),
    Option(
        name="executorPatience",
        group=_RUNS,
        default="`30s`",
        meaning=(
            "How long a larger parallelism waits for its executors before the readers share the"
            " available ones; `0`: it does not wait."
        ),
    ),
    Option(
        name="executorsDir",
        group=_RUNS,
        meaning=(
            "Folder through which the packaged application follows the number of readers; not for"
            " programs of your own."
        ),
    ),
)
"""In the order of the reference."""
