"""What readers report: the documents of a source's hosts as they were last seen, decoded once."""

from balanced_source.documents import report as report_document
from balanced_source.documents.report import HostReport
from balanced_source.documents.storage import unpack
from balanced_source.errors import StateError
from balanced_source_operator.kube.port import Manifest
from balanced_source_operator.resources.documents import blob_of
from balanced_source_operator.resources.identity import Identity
from balanced_source_operator.resources.kinds import CONFIG_MAP
from balanced_source_operator.runtime.observed import Observed


class Reports:
    """Of one host. With many splits a report is large, and a source has many turns for each."""

    def __init__(self, source: Identity, observed: Observed) -> None:
        self._source = source
        self._observed = observed
        self._seen: Manifest | None = None
        self._newest: HostReport | None = None

    def newest(self) -> HostReport | None:
        """The report as it was last seen; one that is empty or edited is no one's."""
        seen = self._observed.get(CONFIG_MAP, self._source.documents.readers)
        if seen is not self._seen:
            self._seen, self._newest = seen, self._decoded(seen)
        return self._newest

    def _decoded(self, seen: Manifest | None) -> HostReport | None:
        if seen is None:
            return None
        try:
            return report_document.decode(unpack(blob_of(seen)), source=self._source.uid)
        except StateError:
            return None
