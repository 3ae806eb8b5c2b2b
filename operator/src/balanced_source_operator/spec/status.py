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
    """Ready, Progressing, Degraded, DataLoss, or Autoscaling."""

    status: Annotated[str, Field(pattern="^(True|False|Unknown)$")]
    """True, False or Unknown."""

    observed_generation: Annotated[int, Field(ge=0)] = 0
    """Generation of the spec that this is about."""

    last_transition_time: Annotated[str, Field(json_schema_extra={"format": "date-time"})]
    """When the status changed last."""

    reason: Annotated[str, Field(min_length=1, max_length=1024)]
    """CamelCase word for programs."""

    message: Annotated[str, Field(max_length=32768)] = ""
    """A sentence for people: what is the case, and what to do."""


class Balance(Model):
    """How evenly splits are spread."""

    min: int = 0
    """Splits of the reader that has fewest."""

    max: int = 0
    """Splits of the reader that has most."""


class ApplicationStatus(Model):
    """The Spark application."""

    name: str = ""
    """Name of the SparkApplication."""

    state: str = ""
    """Pending, Running, Degraded, Stopping, Paused, Finished or Failed."""


class AutoscalingStatus(Model):
    """What the newest decision was taken from. The condition Autoscaling says why."""

    desired_readers: int = 0
    """Number of readers that was decided."""

    utilization: int | None = None
    """Percentage of its capacity that the busiest reader uses, without a backlog; absent while unknown."""

    arrival_rate: int | None = None
    """Records per second that arrive; absent while unknown."""

    capacity_per_reader: int | None = None
    """Records per second that one reader can process; absent until readers have had a backlog."""


class Status(Model):
    """What is the case."""

    observed_generation: int = 0
    """Generation of the spec that was looked at last."""

    conditions: Annotated[list[Condition], Field(max_length=16, json_schema_extra=CONDITIONS_SCHEMA)] = []
    """Ready, Progressing, Degraded."""

    epoch: int = 0
    """Version number of the assignment."""

    acknowledged_epoch: int = 0
    """Newest epoch that the application has adopted."""

    readers: int = 0
    """Number of readers in the newest adopted epoch; what autoscalers read as current size."""

    selector: str = ""
    """Label selector for autoscalers. It matches the executors if each of them is one reader, and no pod otherwise."""

    splits: int = 0
    """Number of known splits."""

    pending_splits: int = 0
    """Known splits that no reader has."""

    balance: Balance = Balance()
    """Splits per reader."""

    lag: int | None = None
    """Records that are there and not read yet; absent while unknown."""

    autoscaling: AutoscalingStatus | None = None
    """What the autoscaler measures; absent without spec.autoscaling."""

    application: ApplicationStatus = ApplicationStatus()
    """The Spark application."""

    message: str = ""
    """The state in one sentence."""

    served_by: Annotated[str, Field(max_length=512)] = ""
    """Namespace and name of the operator's installation that wrote this status."""

    last_valid_spec: Annotated[str, Field(max_length=65_536)] = ""
    """What a restarted operator needs of the last valid spec, while the newest one is invalid. Written by the operator;
    empty if it is too large."""
