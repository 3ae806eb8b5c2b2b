"""Who may write the report document of a host."""

from balanced_source.documents.report import HostReport
from balanced_source_spark.instance import Instance


def is_fenced_by(report: HostReport, stored: HostReport) -> bool:
    """Return whether `stored` is of another driver that took over, or the same number first.

    A report without an instance gives up the claim that its incarnation stands for, so it is never
    a twin's.
    """
    is_twin = stored.incarnation == report.incarnation and report.instance not in (
        "",
        stored.instance,
    )
    return stored.incarnation > report.incarnation or is_twin


def fenced_message(report: HostReport, stored: HostReport) -> str:
    """Return what to tell the user of the query that writes `report`."""
    return (
        f"another query has taken over: {Instance.parse(stored.instance).where} reads as"
        f" incarnation {stored.incarnation} of host {stored.host}, this query was incarnation"
        f" {report.incarnation}. One query at a time can read a source: stop the other one before"
        " you start this one again"
    )
