"""``spec.application``: the PySpark application whose readers receive the splits."""

import enum
from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import AfterValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from balanced_source import names
from balanced_source.sinks import SHARED_FORMATS
from balanced_source_operator.contract.base import (
    LINE,
    PROPERTY,
    ClusterName,
    Duration,
    Model,
    ObjectName,
    Text,
    rule,
    with_rules,
)
from balanced_source_operator.spec.host_loss import HostLossPolicy
from balanced_source_operator.spec.hosts import Hosts
from balanced_source_operator.spec.pod_template import checked_template
from balanced_source_operator.spec.restarts import ApplicationRestart, RestartStrategy
from balanced_source_operator.spec.secret_sources import (
    NO_LOGIN_IN_URL,
    SecretSource,
    no_secrets,
    without_login,
    without_secret_arguments,
    without_secret_variables,
    without_secrets,
)
from balanced_source_operator.spec.spark_values import Memory, SparkVersion

PACKAGED_APPLICATION: Final = "local:///opt/balanced-source/app.py"
"""Our own application: reads the source, applies an optional function, writes the sink."""

IMAGE: Final = r"^[A-Za-z0-9][A-Za-z0-9._:/@-]*$"
PROGRAM: Final = r"^[A-Za-z0-9/.][^\x00-\x20\x7f]*$"
"""Never begins with `-`: the Spark operator puts it into the command line of spark-submit."""

CONF_KEY: Final = r"^spark[.][A-Za-z0-9][A-Za-z0-9._/$-]*$"

CHECKPOINT_OWNER: Final = f"{names.LABEL[:-1]}/{names.OBJECT[1:]}"
"""Namespace and name of a source, as its stream offsets name it."""

COLUMN: Final = r"^[^,\x00-\x20\x7f]([^,\x00-\x1f\x7f]*[^,\x00-\x20\x7f])?$"
"""Names of columns are sent to the driver with commas between them."""

ColumnName = Annotated[str, Field(pattern=COLUMN, max_length=255)]
"""A column of the rows."""

Template = Annotated[
    dict[str, Any],
    Field(json_schema_extra={"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
    AfterValidator(checked_template),
    AfterValidator(without_secret_variables),
]
"""A PodTemplateSpec."""


class Provider(enum.StrEnum):
    """Which Spark operator runs the application."""

    KUBEFLOW = "Kubeflow"
    APACHE = "Apache"


class PullPolicy(enum.StrEnum):
    """When an image is pulled."""

    ALWAYS = "Always"
    IF_NOT_PRESENT = "IfNotPresent"
    NEVER = "Never"


class SinkSpec(Model):
    """Where the packaged application writes to."""

    format: Annotated[str, Field(min_length=1, max_length=128, pattern=PROPERTY)] = "parquet"
    """Format for Spark's writeStream."""

    options: Annotated[
        dict[Annotated[str, Field(min_length=1, max_length=128, pattern=LINE)], Text],
        Field(
            max_length=64,
            json_schema_extra=with_rules(no_secrets("options", "sink.optionsFrom")),
        ),
        AfterValidator(without_secrets("sink.optionsFrom")),
    ] = {}
    """Options of the format, such as path. Do not put secrets here: use optionsFrom."""

    options_from: Annotated[list[SecretSource], Field(max_length=8)] = []
    """Secrets whose keys are further options, such as password. The driver mounts them as files and
    reads them when the query starts. They override `options`; later Secrets override earlier
    ones."""

    partition_by: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=128, pattern=LINE)]], Field(max_length=8)
    ] = []
    """Columns to partition the output by."""


class Trigger(Model):
    """When micro-batches run; exactly one of the two."""

    model_config = ConfigDict(
        json_schema_extra=with_rules(
            rule(
                "has(self.availableNow) && self.availableNow ? !has(self.processingTime) :"
                " has(self.processingTime)",
                "set either processingTime, or availableNow: true",
            )
        )
    )

    processing_time: Duration | None = None
    """Time between the starts of two micro-batches. 0 starts the next one immediately."""

    available_now: bool | None = None
    """Reads the records that are available when the query starts, then ends."""


class Alignment(Model):
    """Event-time alignment by admission, over the splits of all sources of the group."""

    model_config = ConfigDict(
        json_schema_extra=with_rules(
            rule(
                "!has(self.group) || !has(self.idleTimeout) || duration(self.idleTimeout) >="
                " duration('3s')",
                "sources of a group hear of each other every few seconds: idleTimeout must be 3s or"
                " more",
            )
        )
    )

    max_drift: Duration
    """How far a split may be ahead of the slowest active split, by the timestamps of its
    records."""

    idle_timeout: Duration = "30s"
    """Time after which a split that has no more records, or a source of the group that does not
    report, no longer holds back the others."""

    group: ClusterName | None = None
    """Group of sources in this namespace that are aligned with each other."""


class PipelineSpec(Model):
    """What the packaged application does with the rows."""

    transform: (
        Annotated[str, Field(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$", max_length=256)] | None
    ) = None
    """Function that transforms the rows, as module:function. It takes a DataFrame and returns one.
    The module must be on the Python path of the image."""

    sink: SinkSpec = SinkSpec()
    """Where the result is written."""

    trigger: Trigger = Trigger(processing_time="500ms")
    """When micro-batches run."""

    checkpoint_location: Annotated[
        str,
        Field(
            min_length=1,
            max_length=4096,
            pattern=LINE,
            json_schema_extra=with_rules(NO_LOGIN_IN_URL),
        ),
        AfterValidator(without_login),
    ]
    """Folder or URL of the Spark checkpoint. It holds the positions: keep it as long as the source
    exists."""

    accept_checkpoint_of: Annotated[str, Field(pattern=CHECKPOINT_OWNER, max_length=317)] | None = (
        None
    )
    """Namespace and name of another source, such as shop/orders-old, whose Spark checkpoint this
    source continues from, for example after a rename. Absent: the query ends with an error when its
    checkpoint belongs to another source."""

    include_headers: bool = False
    """Whether rows of a Kafka source have a column `headers`."""

    columns: Annotated[list[ColumnName], Field(min_length=1, max_length=200)] | None = None
    """Columns of the rows, in this order, for sources that let you choose them: Kafka (key, value,
    topic, partition, offset, timestamp, timestampType, headers, cluster) and files (those of the
    schema). Columns that are not listed are not created. Absent: all columns; for Kafka all except
    headers."""

    max_records_per_reader: Annotated[int, Field(ge=1, le=2**53)] | None = None
    """If a reader's share of a micro-batch exceeds this many records, the surplus is split into
    ranges that other readers read."""

    executor_patience: Duration | None = None
    """How long a larger parallelism waits for its executors before the readers share the available
    ones. 0 does not wait. Absent: 30s."""

    alignment: Alignment | None = None
    """Aligns splits in event time. Absent: splits are not aligned."""

    @property
    def row_fields(self) -> Mapping[str, str]:
        """Fields that only some kinds of source have, as far as they are set.

        See `OperatorHalf.row_fields`. `includeHeaders` is one of Kafka and stands here, because
        users have it in their manifests; a new one belongs to its connector's branch of the spec.
        """
        return {"includeHeaders": "true"} if self.include_headers else {}


class Driver(Model):
    """The driver's pod."""

    cores: Annotated[int, Field(ge=1, le=64)] = 1
    """Cores of the driver."""

    memory: Memory = "1g"
    """Heap of the driver's JVM."""

    template: Template | None = None
    """Pod template. The container must be named spark-kubernetes-driver. Set variables that hold
    secrets with valueFrom."""


class Executor(Model):
    """The executors' pods. How many there are follows from parallelism and cores."""

    cores: Annotated[int, Field(ge=1, le=64)] = 1
    """Cores of one executor. Each core is one task slot."""

    memory: Memory = "1g"
    """Heap of an executor's JVM."""

    warm_spares: Annotated[int, Field(ge=0, le=100)] = 0
    """Executors beside those that the readers need. They take part in reading, and a larger
    parallelism takes effect without waiting for pods as long as they suffice. Afterwards they are
    replaced. Only the packaged application keeps spares."""

    template: Template | None = None
    """Pod template. The container must be named spark-kubernetes-executor. Set variables that hold
    secrets with valueFrom."""


_ALIGNED: Final = (
    "hosts cannot be used with pipeline.alignment: splits of different hosts would not wait for"
    " each other"
)
_ENDING: Final = (
    "hosts cannot be used with trigger availableNow: a query that ends by itself cannot take over"
    " splits"
)


_SHARED: Final = ", ".join(sorted(SHARED_FORMATS))
_BLUE_GREEN: Final = (
    "restart.strategy BlueGreen needs the packaged application with a pipeline that two queries may"
    f" run: a sink of format {_SHARED}, no alignment, and no trigger availableNow. Use Recreate"
)
_ONE_HOST: Final = (
    "restart.strategy BlueGreen is for a source with one application: several hosts restart in"
    " turn, and each hands its splits over first. Remove hosts or strategy"
)
_SPARES: Final = (
    "executor.warmSpares needs the packaged application without spark.dynamicAllocation.enabled in"
    " sparkConf: otherwise the program, or Spark, decides how many executors there are"
)
_DYNAMIC: Final = "spark.dynamicAllocation.enabled"
_IS_BLUE_GREEN: Final = "self.restart.strategy == 'BlueGreen'"


class Application(Model):
    """The Spark application.

    A change here (and only here) restarts it, when `restart` allows it.
    """

    model_config = ConfigDict(
        json_schema_extra=with_rules(
            rule(
                f"has(self.pipeline) || self.mainApplicationFile != '{PACKAGED_APPLICATION}'",
                "the packaged application needs pipeline; set it, or name your own"
                " mainApplicationFile",
            ),
            rule(
                "!has(self.sparkConfFrom) || size(self.sparkConfFrom) == 0 "
                f"|| self.mainApplicationFile == '{PACKAGED_APPLICATION}'",
                "only the packaged application reads sparkConfFrom: mount the Secret with the"
                " driver's template",
            ),
            rule(
                "!has(self.hosts) || !has(self.pipeline) || !has(self.pipeline.alignment)", _ALIGNED
            ),
            rule(
                "!has(self.hosts) || !has(self.pipeline) ||"
                " !has(self.pipeline.trigger.availableNow) || !self.pipeline.trigger.availableNow",
                _ENDING,
            ),
            rule(f"!has(self.hosts) || !({_IS_BLUE_GREEN})", _ONE_HOST),
            rule(
                f"!({_IS_BLUE_GREEN}) || (self.mainApplicationFile == '{PACKAGED_APPLICATION}' &&"
                " has(self.pipeline) &&"
                f" self.pipeline.sink.format.matches('(?i)^({'|'.join(sorted(SHARED_FORMATS))})$')"
                " && !has(self.pipeline.alignment) &&"
                " !(has(self.pipeline.trigger.availableNow) &&"
                " self.pipeline.trigger.availableNow))",
                _BLUE_GREEN,
            ),
            rule(
                f"self.executor.warmSpares == 0 || (self.mainApplicationFile =="
                f" '{PACKAGED_APPLICATION}' && (!('{_DYNAMIC}' in self.sparkConf) ||"
                f" !self.sparkConf['{_DYNAMIC}'].matches('(?i)^true$')))",
                _SPARES,
            ),
        )
    )

    provider: Provider = Provider.KUBEFLOW
    """Which Spark operator runs the application. Kubeflow: sparkoperator.k8s.io/v1beta2. Apache:
    spark.apache.org/v1. A change replaces the running application."""

    image: Annotated[str, Field(min_length=1, max_length=1024, pattern=IMAGE)]
    """Image of driver and executors."""

    image_pull_policy: PullPolicy = PullPolicy.IF_NOT_PRESENT
    """When the image is pulled."""

    image_pull_secrets: Annotated[list[ObjectName], Field(max_length=8)] = []
    """Names of Secrets for the registry."""

    spark_version: SparkVersion
    """Spark version in the image; 4.2 or newer."""

    main_application_file: Annotated[str, Field(min_length=1, max_length=4096, pattern=PROGRAM)] = (
        PACKAGED_APPLICATION
    )
    """PySpark program to run. The default is the packaged application. A program of your own reads
    format("balanced")."""

    arguments: Annotated[
        list[Text], Field(max_length=64), AfterValidator(without_secret_arguments)
    ] = []
    """Arguments of the program. Do not put secrets here: let the program read them from variables
    of the driver's template or from files."""

    pipeline: PipelineSpec | None = None
    """What the packaged application does with the rows."""

    spark_conf: Annotated[
        dict[Annotated[str, Field(min_length=7, max_length=256, pattern=CONF_KEY)], Text],
        Field(
            max_length=256,
            json_schema_extra=with_rules(
                no_secrets("settings", "sparkConfFrom"),
                rule(
                    f"self.all(key, key.matches('{CONF_KEY}'))",
                    "names of Spark settings begin with spark.",
                ),
                rule(
                    "!self.exists(key, key in ['spark.kubernetes.container.image',"
                    " 'spark.kubernetes.driver.container.image',"
                    " 'spark.kubernetes.executor.container.image'])",
                    "set spec.application.image instead of an image in sparkConf",
                ),
                rule(
                    "!('spark.executor.instances' in self)",
                    "the number of executors follows from parallelism and executor.cores",
                ),
                rule(
                    "!('spark.kubernetes.authenticate.driver.serviceAccountName' in self)",
                    "set spec.application.serviceAccount instead",
                ),
            ),
        ),
        AfterValidator(without_secrets("sparkConfFrom")),
    ] = {}
    """Spark configuration. Do not put secrets here: use sparkConfFrom."""

    spark_conf_from: Annotated[list[SecretSource], Field(max_length=8)] = []
    """Secrets whose keys are further Spark settings, such as spark.hadoop.fs.s3a.secret.key. The
    packaged application reads them from mounted files before it creates the session, so settings
    that a JVM needs at its start have no effect."""

    hosts: Hosts | None = None
    """How many SparkApplications read the source together. A change takes effect while they run.
    Absent: one."""

    host_loss_policy: HostLossPolicy = HostLossPolicy()
    """What happens to the splits of one of several hosts that does not report for some time."""

    restart: ApplicationRestart = ApplicationRestart()
    """When changed settings restart the running application."""

    service_account: ObjectName = "spark"
    """Service account of the driver. It needs the rights to run executors. The operator adds the
    right to read the assignment of this source and to write its report."""

    driver: Driver = Driver()
    """Settings of the driver."""

    executor: Executor = Executor()
    """Settings of the executors."""

    @model_validator(mode="after")
    def _can_have_hosts(self) -> "Application":
        if self.hosts is None or self.pipeline is None:
            return self
        if self.pipeline.alignment is not None:
            raise PydanticCustomError("hosts_aligned", _ALIGNED)
        if self.pipeline.trigger.available_now:
            raise PydanticCustomError("hosts_ending", _ENDING)
        return self

    @model_validator(mode="after")
    def _can_be_blue_green(self) -> "Application":
        if not self.is_blue_green:
            return self
        if self.hosts is not None:
            raise PydanticCustomError("blue_green_hosts", _ONE_HOST)
        pipeline = self.pipeline
        if (
            self.main_application_file != PACKAGED_APPLICATION
            or pipeline is None
            or pipeline.sink.format.lower() not in SHARED_FORMATS
            or pipeline.alignment is not None
            or pipeline.trigger.available_now
        ):
            raise PydanticCustomError("blue_green", _BLUE_GREEN)
        return self

    @model_validator(mode="after")
    def _can_keep_spares(self) -> "Application":
        is_dynamic = self.spark_conf.get(_DYNAMIC, "").lower() == "true"
        is_packaged = self.main_application_file == PACKAGED_APPLICATION
        if self.executor.warm_spares and (is_dynamic or not is_packaged):
            raise PydanticCustomError("warm_spares", _SPARES)
        return self

    @property
    def is_blue_green(self) -> bool:
        """Whether a second application takes over before the first one restarts."""
        return self.restart.strategy is RestartStrategy.BLUE_GREEN
