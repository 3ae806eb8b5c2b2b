"""A channel between a Spark driver and an operator, who is the test."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from balanced_source.api import Problem, ProblemKey
from balanced_source.documents.assignment import Assignment
from balanced_source.documents.report import HostReport
from balanced_source_spark.channels.channel import AssignmentListener
from balanced_source_spark.instance import Instance


@dataclass
class MemoryChannel:
    """See `AssignmentChannel`. Keeps the reports; `publish` is the operator's side."""

    reports: list[HostReport] = field(default_factory=list)
    listener: AssignmentListener | None = None
    has_operator: bool = True
    is_durable: bool = True

    def start(self, listener: AssignmentListener) -> None:
        self.listener = listener

    def claim(self, host: str) -> int:
        return 1

    def former(self, host: str) -> HostReport | None:
        return None

    def is_gone(self, instance: Instance) -> bool:
        return False

    def write(self, report: HostReport) -> None:
        self.reports.append(report)

    def refusal(self) -> str | None:
        return None

    def problems(self) -> Mapping[ProblemKey, Problem]:
        return {}

    def close(self) -> None:
        self.listener = None

    def publish(self, document: Assignment) -> None:
        """Let the driver see an assignment."""
        assert self.listener is not None
        self.listener(document)
