"""The options of files, in the order of the reference."""

from typing import Final

from balanced_source_spark.contract.option_table import Option

_READ: Final = "Files"
_PARSED: Final = "Files: records"
_STORE: Final = "Files: stores"

METADATA: Final = {
    "_path": "STRING",
    "_block_offset": "BIGINT",
    "_modification_time": "TIMESTAMP",
    "_size": "BIGINT",
}
"""Columns that every row may have: name → type."""

OPTIONS: Final = (
    Option(
        name="path",
        group=_READ,
        is_embedded=True,
        meaning=(
            "Files to read: a file, a folder with everything in it, or a pattern with `*`, `?`,"
            " `[a-z]`, `{a,b}` and `**`. An absolute path, or a URL that begins with `s3://`,"
            " `gs://`, `abfss://`, `az://` or `hdfs://`. Names that begin with `_` or `.` are"
            " skipped."
        ),
    ),
    Option(
        name="paths",
        group=_READ,
        is_embedded=True,
        meaning="Several of these, as a JSON array of text.",
    ),
    Option(
        name="fileFormat",
        group=_READ,
        default="`text`",
        meaning=(
            "`text`, `json` (one object per line), `csv`, `parquet`, `orc`, `avro` or `binary`."
        ),
    ),
    Option(
        name="schema",
        group=_READ,
        meaning=(
            "Columns as DDL, such as `id BIGINT, name STRING`. `text` has the column `value`,"
            " `binary` the column `content`. Columns that a Parquet, ORC or Avro file does not have"
            " are null."
        ),
    ),
    Option(
        name="inferSchema",
        group=_READ,
        default="`false`",
        is_embedded=True,
        meaning=(
            "Whether the columns are inferred from up to 10 files when the query starts. A stream"
            " needs `stateDir`, which keeps them: later starts take the columns from there. Absent:"
            " `schema` says them."
        ),
    ),
    Option(
        name="columns",
        group=_READ,
        meaning=(
            "Names of the columns to read, separated by commas: the others of `schema` are left"
            " out."
        ),
    ),
    Option(
        name="metadataColumns",
        group=_READ,
        default="`true`",
        meaning=f"Whether rows have the columns {', '.join(f'`{name}`' for name in METADATA)}.",
    ),
    Option(
        name="splitBytes",
        group=_READ,
        default="64 MiB",
        is_embedded=True,
        meaning=(
            "Size of the blocks into which files are cut. Compressed text and `binary` files are"
            " never cut."
        ),
    ),
    Option(
        name="lookAhead",
        group=_READ,
        default="`2`",
        is_embedded=True,
        meaning="Blocks that are assigned to each reader ahead. A micro-batch reads at most these.",
    ),
    Option(
        name="discoveryInterval",
        group=_READ,
        is_embedded=True,
        meaning=(
            "Time between two listings of new files. Absent: the query reads the files that exist"
            " at the start. Then a streaming query ends with `trigger(availableNow=True)`, or if"
            " `balanced_source_spark.stop_when_finished(query)` was called. If set, `stateDir` is"
            " required."
        ),
    ),
    Option(
        name="namesGrow",
        group=_READ,
        default="`false`",
        is_embedded=True,
        meaning=(
            "Whether names of new objects sort after those of older ones, as with names that begin"
            " with a time. Then most listings of an S3-compatible store or Google Cloud Storage"
            " return only new objects. No effect on other stores."
        ),
    ),
    Option(
        name="lateWindow",
        group=_READ,
        default="`1h`",
        is_embedded=True,
        meaning=(
            "How late a file may appear: how much older it may be than files found before"
            " (modification time)."
        ),
    ),
    Option(
        name="onLoss",
        group=_READ,
        default="`Fail`",
        is_embedded=True,
        meaning=(
            "What happens if a file changed, disappeared or arrived too late: `Fail`, or `Skip` it"
            " and count it."
        ),
    ),
    Option(
        name="allowRepeat",
        group=_READ,
        default="`false`",
        is_embedded=True,
        meaning=(
            "Whether reading continues after the state was lost, although files may then be read"
            " twice."
        ),
    ),
    Option(
        name="mode",
        group=_PARSED,
        default="`PERMISSIVE`",
        meaning=(
            "Malformed records of `json` and `csv`. `PERMISSIVE` sets all their columns to null,"
            " and puts the text into the column `columnNameOfCorruptRecord` if the schema has it."
            " `DROPMALFORMED` drops them. `FAILFAST` fails."
        ),
    ),
    Option(
        name="columnNameOfCorruptRecord",
        group=_PARSED,
        default="`_corrupt_record`",
        meaning="Column for the text of malformed records.",
    ),
    Option(
        name="header",
        group=_PARSED,
        default="`false`",
        meaning="`csv`: whether the first line of each file has column names and is skipped.",
    ),
    Option(
        name="sep", group=_PARSED, default="`,`", meaning="`csv`: the character between two values."
    ),
    Option(
        name="quote",
        group=_PARSED,
        default='`"`',
        meaning="`csv`: the character around values; empty: none.",
    ),
    Option(
        name="escape",
        group=_PARSED,
        meaning="`csv`: the character that escapes; absent or as `quote`: quotes are doubled.",
    ),
    Option(
        name="nullValue",
        group=_PARSED,
        default="empty text",
        meaning=(
            "`csv`: the text that means null, besides an empty value without quotes. In quotes, it"
            " is a text in columns of type STRING or BINARY, and null in others."
        ),
    ),
    Option(
        name="s3Endpoint",
        group=_STORE,
        is_embedded=True,
        meaning="URL of an S3-compatible server. Absent: AWS.",
    ),
    Option(name="s3Region", group=_STORE, is_embedded=True, meaning="Region of the buckets."),
    Option(
        name="s3Secret",
        group=_STORE,
        is_embedded=True,
        meaning=(
            "Name of a folder in `secretsDir` with the files `accessKeyId` and `secretAccessKey`,"
            " and optionally `sessionToken`. Absent: the credentials of the driver's and executors'"
            " environment."
        ),
    ),
    Option(
        name="s3NotificationQueue",
        group=_STORE,
        is_embedded=True,
        meaning=(
            "URL of an SQS queue into which the store puts events of created objects, for this"
            " query alone. Then most looks read the queue instead of listing. Needs"
            " `discoveryInterval`."
        ),
    ),
    Option(
        name="gcsEndpoint",
        group=_STORE,
        is_embedded=True,
        meaning="URL of a server with the interface of Google Cloud Storage. Absent: Google's own.",
    ),
    Option(
        name="gcsSecret",
        group=_STORE,
        is_embedded=True,
        meaning=(
            "Name of a folder in `secretsDir` with the file `serviceAccount`, the JSON of a service"
            " account key. Absent: the credentials of the driver's and executors' environment."
        ),
    ),
    Option(
        name="azureAccount",
        group=_STORE,
        is_embedded=True,
        meaning="Storage account of `az://` paths; `abfss://` URLs name it themselves.",
    ),
    Option(
        name="azureEndpoint",
        group=_STORE,
        is_embedded=True,
        meaning="URL of the Blob service. Absent: that of the account in Azure.",
    ),
    Option(
        name="azureSecret",
        group=_STORE,
        is_embedded=True,
        meaning=(
            "Name of a folder in `secretsDir` with the file `accountKey`, or `sasToken`, or the"
            " files `tenantId`, `clientId` and `clientSecret`. Absent: the credentials of the"
            " driver's and executors' environment."
        ),
    ),
)
