"""What the drivers of a source have counted as lost, in the words of its connector."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from balanced_source.api import Problem
from balanced_source.documents.report import SKIPPED_GAPS, HostReport
from balanced_source.reasons import Reason
from balanced_source_operator.contract.blame import blamed
from balanced_source_operator.contract.half import NO_LOSSES, Losses, half_of


def counted_losses(kind: str, reports: Iterable[HostReport]) -> Losses:
    """Return what the reports of all hosts say of lost records; see `OperatorHalf.losses`.

    Raises:
        ConnectorError: the connector of the source cannot be used, or fails.
    """
    numbers = _added_up(reports)
    if not numbers:
        return NO_LOSSES
    with blamed(kind, "the numbers of its drivers"):
        found: object = half_of(kind).losses(numbers)
        if not isinstance(found, Losses):
            raise TypeError(f"losses returned a {type(found).__name__}, and Losses were expected")
        return _with_gaps(found, numbers.get(SKIPPED_GAPS, 0))


def _with_gaps(found: Losses, gaps: int) -> Losses:
    """Return what was lost, with the gaps that any kind of source may report."""
    if not gaps:
        return found
    times = "once" if gaps == 1 else f"{gaps} times"
    problem = Problem(
        reason=Reason.RECORDS_SKIPPED,
        message=(
            f"records were gone before they were read, {times}, and were skipped, as the source's"
            " policy allows. The driver's log names the splits"
        ),
    )
    return replace(found, gaps=found.gaps + gaps, problems=(*found.problems, problem))


def _added_up(reports: Iterable[HostReport]) -> Mapping[str, int]:
    """A number that a host does not report is 0 there: connectors leave out what says nothing."""
    found: dict[str, int] = {}
    for report in reports:
        for name, number in report.metrics.items():
            if type(number) is int:
                found[name] = found.get(name, 0) + number
    return found
