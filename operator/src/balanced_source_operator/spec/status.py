"""``status``: derived, for people and for other controllers.

Nothing depends on it but a restart while the spec is invalid: see `last_valid_spec`.
"""

from typing import Annotated

from pydantic import Field

from balanced_source_operator.contract.base import Model

CONDITIONS_SCHEMA = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}


class Condition(Model):
    """A metav1.Condition."""

    type: Annotated[str, Field(max_length=316)]
    """Ready, Progressing, Degraded, DataLoss, RestartPending, Paused, or Autoscaling."""

    status: Annotated[str, Field(pattern="^(True|False|Unknown)$")]
    """True, False or Unknown."""

    observed_generation: Annotated[int, Field(ge=0)] = 0
    """Generation of the spec that the condition describes."""

    last_transition_time: Annotated[str, Field(json_schema_extra={"format": "date-time"})]
    """When the status of the condition last changed."""

    reason: Annotated[str, Field(min_length=1, max_length=1024)]
    """Reason for the status, as a CamelCase word."""

    message: Annotated[str, Field(max_length=32768)] = ""
    """What happened, to which object, and what to do."""


class BalanceStatus(Model):
    """How evenly splits are spread."""

    min: int = 0
    """Number of splits of the reader with the fewest."""

    max: int = 0
    """Number of splits of the reader with the most."""


class ApplicationStatus(Model):
    """The Spark application."""

    name: str = ""
    """Name of the SparkApplication."""

    state: str = ""
    """Pending, Running, Degraded, Stopping, Paused, Finished or Failed."""


class HostStatus(Model):
    """One of several hosts of a source."""

    name: Annotated[str, Field(max_length=63)]
    """Name of the host."""

    role: str = ""
    """Member, Joining, Leaving or Draining (a lost host). Only members have readers."""

    application: str = ""
    """Name of its SparkApplication."""

    state: str = ""
    """State of its SparkApplication: Pending, Running, Degraded, Stopping, Paused, Finished or
    Failed."""

    readers: int = 0
    """Number of its readers."""

    splits: int = 0
    """Number of splits of its readers."""

    lag: int | None = None
    """Number of available records of its splits that have not been read yet, including those of the
    running micro-batch.

    Absent while unknown.
    """

    acknowledged_epoch: int = 0
    """Newest epoch that it has adopted."""

    image: str = ""
    """Image of its SparkApplication."""


class AutoscalingStatus(Model):
    """What the newest decision was taken from. The condition Autoscaling says why."""

    desired_readers: int = 0
    """Number of readers that the autoscaler chose."""

    utilization: int | None = None
    """Percentage of its capacity that the busiest reader uses, without a backlog; absent while
    unknown."""

    arrival_rate: int | None = None
    """Records per second that arrive; absent while unknown, or while there is less than one."""

    capacity_per_reader: int | None = None
    """Records per second that one reader can process; absent while unknown, or if it is less than
    one. It is known when readers have had a backlog."""


class Status(Model):
    """The observed state of a source."""

    observed_generation: int = 0
    """Generation of the spec that the operator handled last."""

    conditions: Annotated[
        list[Condition], Field(max_length=16, json_schema_extra=CONDITIONS_SCHEMA)
    ] = []
    """Conditions of the source."""

    epoch: int = 0
    """Version number of the assignment."""

    acknowledged_epoch: int = 0
    """Newest epoch that the application has adopted."""

    readers: int = 0
    """Number of readers in the newest adopted epoch. Autoscalers use it as the current size."""

    selector: str = ""
    """Label selector for autoscalers.

    It matches the executors if each of them is one reader, and no pod otherwise.
    """

    splits: int = 0
    """Number of known splits."""

    pending_splits: int = 0
    """Number of known splits that have no reader."""

    balance: BalanceStatus = BalanceStatus()
    """Splits per reader."""

    lag: int | None = None
    """Number of available records that have not been read yet, including those of the running
    micro-batch. Absent while unknown."""

    seconds_behind: int | None = None
    """Seconds by which the slowest split is behind its newest record, for sources that measure this
    instead of the number of records, such as Kinesis. Absent while unknown."""

    autoscaling: AutoscalingStatus | None = None
    """What the autoscaler measures; absent without spec.autoscaling."""

    application: ApplicationStatus = ApplicationStatus()
    """The Spark application. With several hosts: one that does not run, if any."""

    hosts: Annotated[list[HostStatus], Field(max_length=128)] = []
    """Hosts of a source that has several."""

    running_hosts: str = ""
    """Running hosts and all hosts, such as 2/3. Empty for a source with one host."""

    message: str = ""
    """State of the source in one sentence."""

    served_by: Annotated[str, Field(max_length=512)] = ""
    """Namespace and name of the operator's installation that wrote this status."""

    settings: Annotated[str, Field(max_length=65_536)] = ""
    """The settings of the last healthy application, and those that failed since: what a restarted
    operator needs to roll back. Empty if there are none. Settings that look like secrets are not
    kept."""

    last_valid_spec: Annotated[str, Field(max_length=65_536)] = ""
    """The parts of the last valid spec that a restarted operator needs while the newest spec is
    invalid. Empty if they are too large."""
