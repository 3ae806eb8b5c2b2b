"""``spec.source.files`` as pydantic models: this branch of the CRD."""

import enum
from collections.abc import Mapping
from typing import Annotated, Final

from pydantic import ConfigDict, Field

from balanced_source.connectors.files import OnFileLoss
from balanced_source_operator.contract.base import (
    LINE,
    Duration,
    Model,
    ObjectName,
    rule,
    with_rules,
)

PATH: Final = (
    r"^(/|file:///|s3a?://[a-z0-9]|gs://[a-z0-9]|az://[a-z0-9$]|abfss://[a-z0-9$][a-z0-9-]*@[a-z0-9]"
    r"|hdfs://[A-Za-z0-9/])[^\x00-\x1f\x7f]*$"
)
ENDPOINT: Final = r"^https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?$"
QUEUE: Final = r"^https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?/[A-Za-z0-9/_.-]+$"
REGION: Final = r"^[a-z0-9][a-z0-9-]{0,63}$"
ACCOUNT: Final = r"^[a-z0-9]{3,24}$"

WORDS: Final[Mapping[str, str]] = {
    PATH: "an absolute path, or an s3://, gs://, abfss://, az:// or hdfs:// URL",
    ENDPOINT: "an http or https URL of a host, without a path",
    QUEUE: "the http or https URL of a queue",
    REGION: "the name of a region",
    ACCOUNT: "the name of a storage account",
}
"""What a pattern asks for."""

FilePath = Annotated[str, Field(min_length=1, max_length=1024, pattern=PATH)]
Character = Annotated[str, Field(min_length=1, max_length=2, pattern=r"^(\\t|[\x20-\x7e])$")]
Ddl = Annotated[str, Field(min_length=1, max_length=16384, pattern=LINE)]
Name = Annotated[str, Field(min_length=1, max_length=256, pattern=LINE)]

_ONE_STORE: Final = " || ".join(
    f"self.paths.all(p, {test})"
    for test in (
        "p.startsWith('/') || p.startsWith('file:')",
        "p.startsWith('s3')",
        "p.startsWith('gs:')",
        "p.startsWith('a')",
        "p.startsWith('hdfs:')",
    )
)
"""Rule about the beginnings that `PATH` allows."""

_FIXED: Final = "cannot be changed: create a new source instead"


class FileFormat(enum.StrEnum):
    """What the bytes of a file mean."""

    TEXT = "Text"
    JSON = "Json"
    CSV = "Csv"
    PARQUET = "Parquet"
    ORC = "Orc"
    AVRO = "Avro"
    BINARY = "Binary"


class CorruptMode(enum.StrEnum):
    """What happens to records that do not fit the schema."""

    PERMISSIVE = "Permissive"
    DROP_MALFORMED = "DropMalformed"
    FAIL_FAST = "FailFast"


class Records(Model):
    """How the records of Json and Csv files are parsed."""

    mode: CorruptMode = CorruptMode.PERMISSIVE
    """What happens to malformed records.

    Permissive: their columns are null. DropMalformed: they are dropped. FailFast: the query ends
    with an error.
    """

    corrupt_column: Name = "_corrupt_record"
    """Column for the text of malformed records, if the schema has it."""

    header: bool = False
    """Csv: whether the first line of each file has column names and is skipped."""

    separator: Character = ","
    """Csv: the character between two values."""

    quote: Character = '"'
    """Csv: the character around values."""

    escape: Character | None = None
    """Csv: the character that escapes. Absent: quotes are doubled."""

    null_value: Annotated[str, Field(max_length=64, pattern=LINE)] = ""
    """Csv: the text that means null, besides an empty value without quotes."""


class S3StoreSpec(Model):
    """How an S3-compatible store is reached."""

    endpoint: Annotated[str, Field(max_length=512, pattern=ENDPOINT)] | None = None
    """URL of the server. Absent: AWS."""

    region: Annotated[str, Field(max_length=64, pattern=REGION)] | None = None
    """Region of the buckets."""

    secret: ObjectName | None = None
    """Secret in the namespace of the source with the keys accessKeyId and secretAccessKey, and
    optionally sessionToken. Absent: the credentials of the driver's and the executors' pods."""

    notification_queue: Annotated[str, Field(max_length=512, pattern=QUEUE)] | None = None
    """URL of an SQS queue into which the store puts events of created objects, for this source
    alone. Then most looks read the queue instead of listing. Needs discoveryInterval."""


class GcsStoreSpec(Model):
    """How Google Cloud Storage is reached."""

    endpoint: Annotated[str, Field(max_length=512, pattern=ENDPOINT)] | None = None
    """URL of a server with its interface. Absent: Google's own."""

    secret: ObjectName | None = None
    """Secret in the namespace of the source with the key serviceAccount, the JSON of a service
    account key. Absent: the credentials of the driver's and the executors' pods."""


class AzureStoreSpec(Model):
    """How Azure Blob Storage and Data Lake Storage are reached."""

    endpoint: Annotated[str, Field(max_length=512, pattern=ENDPOINT)] | None = None
    """URL of the Blob service. Absent: that of the account in Azure."""

    account: Annotated[str, Field(max_length=24, pattern=ACCOUNT)] | None = None
    """Storage account of az:// paths. abfss:// URLs name it themselves."""

    secret: ObjectName | None = None
    """Secret in the namespace of the source with the key accountKey, or sasToken, or the keys
    tenantId, clientId and clientSecret. Absent: the credentials of the driver's and the executors'
    pods."""


class FilesSpec(Model):
    """Files on mounted volumes, in object stores and in HDFS. The driver lists them."""

    model_config = ConfigDict(
        json_schema_extra=with_rules(
            rule("self.paths == oldSelf.paths", f"paths {_FIXED}"),
            rule("self.format == oldSelf.format", f"format {_FIXED}"),
            rule(
                "has(self.schema) == has(oldSelf.schema) && (!has(self.schema) || self.schema =="
                " oldSelf.schema)",
                f"schema {_FIXED}",
            ),
            rule(
                "has(self.discoveryInterval) == has(oldSelf.discoveryInterval)",
                f"whether there is a discoveryInterval {_FIXED}",
            ),
            rule(
                "!has(self.discoveryInterval) || duration(self.discoveryInterval) >="
                " duration('1s')",
                "discoveryInterval must be at least 1s",
            ),
            rule(
                "self.format in ['Text', 'Binary'] || has(self.schema)",
                "schema is required for this format",
            ),
            rule(
                "!has(self.s3) || !has(self.s3.notificationQueue) || has(self.discoveryInterval)",
                "s3.notificationQueue needs discoveryInterval",
            ),
            rule(_ONE_STORE, "paths must all be in stores of one kind, or all on volumes"),
        )
    )

    paths: Annotated[list[FilePath], Field(min_length=1, max_length=32)]
    """Files to read: files, folders with everything in them, or patterns with *, ?, [a-z], {a,b}
    and **. Absolute paths on volumes that driver and executors mount, or URLs that begin with
    s3://, gs://, abfss://, az:// or hdfs://. Names that begin with _ or . are skipped."""

    format: FileFormat
    """Format of the files. Json has one object per line."""

    ddl: Annotated[
        Annotated[str, Field(min_length=1, max_length=16384, pattern=LINE)] | None,
        Field(alias="schema"),
    ] = None
    """Columns as DDL, such as id BIGINT, name STRING.

    Absent: one column, value for Text and content for Binary.
    """

    metadata_columns: bool | None = None
    """Whether rows have columns that tell the file, the block, its time and its size. The default
    is true, and false for a part of a hybrid source."""

    records: Records = Records()
    """How records are parsed."""

    s3: S3StoreSpec | None = None
    """Access to the store of s3:// paths."""

    gcs: GcsStoreSpec | None = None
    """Access to the store of gs:// paths."""

    azure: AzureStoreSpec | None = None
    """Access to the store of abfss:// and az:// paths."""

    split_bytes: Annotated[int, Field(ge=65536, le=2**40)] = 67108864
    """Size in bytes of the blocks into which files are cut.

    Compressed text and Binary files are never cut.
    """

    look_ahead: Annotated[int, Field(ge=1, le=1000)] = 2
    """Number of blocks that are assigned to each reader ahead.

    A micro-batch reads at most these.
    """

    discovery_interval: Duration | None = None
    """Time between two listings of new files, at least 1s.

    Absent: the source reads the files that exist at the start, and is then finished.
    """

    names_grow: bool = False
    """Whether names of new objects sort after those of older ones, as with names that begin with a
    time. Then most listings of an S3-compatible store or Google Cloud Storage return only new
    objects. No effect on other stores."""

    late_window: Duration = "1h"
    """How late a file may appear: how much older it may be than files found before (modification
    time)."""

    on_loss: OnFileLoss = OnFileLoss.FAIL
    """What happens if a file changed, disappeared or arrived too late.

    Fail: reading stops, and a condition names the file. Skip: reading continues without the file,
    which is counted.
    """

    allow_repeat: bool = False
    """Whether reading continues after the enumerator state was lost, although files may then be
    read twice."""
