"""What readers report: the documents of a source's hosts as they were last seen, decoded once."""

from collections.abc import Collection, Mapping
from typing import Final

from balanced_source.api import Problem, ProblemBoard
from balanced_source.documents import report as report_document
from balanced_source.documents.report import HostReport
from balanced_source.documents.storage import unpack
from balanced_source.errors import IncompatibleVersionError, StateError
from balanced_source.reasons import Reason
from balanced_source_operator.kube.port import Manifest
from balanced_source_operator.resources.documents import blob_of
from balanced_source_operator.resources.identity import Identity
from balanced_source_operator.resources.kinds import CONFIG_MAP
from balanced_source_operator.runtime.observed import Observed

_TOO_NEW: Final = "too new"
"""Group of the problems of hosts whose reports are of a newer version."""


class Reports:
    """Of one host. With many splits a report is large, and a source has many turns for each.

    Attributes:
        name: of the ConfigMap.
    """

    def __init__(self, source: Identity, observed: Observed) -> None:
        self._source = source
        # Asked for at each change of any ConfigMap of the source, so made once.
        self.name = source.documents.readers
        self._observed = observed
        self._seen: Manifest | None = None
        self._newest: HostReport | None = None
        self._refused: IncompatibleVersionError | None = None

    def newest(self) -> HostReport | None:
        """The report as it was last seen; one that is empty or edited is no one's."""
        seen = self._observed.get(CONFIG_MAP, self.name)
        if seen is not self._seen:
            self._seen, self._newest = seen, self._decoded(seen)
        return self._newest

    @property
    def problem(self) -> Problem | None:
        """What is wrong with the report that `newest` has looked at, if a newer release wrote it.

        What is merely edited is written again within seconds by a driver that runs.
        """
        if self._refused is None:
            return None
        message = (
            f"The report of host {self._source.host} in ConfigMap {self.name}"
            f" has version {self._refused.found}, and the operator reads versions up to"
            f" {self._refused.supported}: the driver is of a newer release. Upgrade the operator,"
            " or use an image of its release (spec.application.image)"
        )
        return Problem(reason=Reason.REPORT_TOO_NEW, message=message, scope=self.name)

    def _decoded(self, seen: Manifest | None) -> HostReport | None:
        self._refused = None
        if seen is None:
            return None
        try:
            return report_document.decode(unpack(blob_of(seen)), source=self._source.uid)
        except IncompatibleVersionError as error:
            self._refused = error
        except StateError:
            pass
        return None


def report_newer(
    reports: Mapping[str, Reports], hosts: Collection[str], problems: ProblemBoard
) -> None:
    """Report the hosts whose drivers report in a version that is too new, and clear the others.

    Args:
        reports: of hosts, as they were looked at last.
        hosts: those that count. Of one whose driver is gone, the report may be of long ago.
        problems: where that is reported.
    """
    found = {host: reports[host].problem for host in hosts if host in reports}
    problems.replace(_TOO_NEW, {host: one for host, one in found.items() if one is not None})
