"""What drivers of a host need before they start: the ConfigMap for the report, and their right."""

from collections.abc import Collection

from balanced_source_operator.kube.port import KubernetesApi, Manifest
from balanced_source_operator.resources.access import grants_the_same, role, role_binding
from balanced_source_operator.resources.documents import config_map
from balanced_source_operator.resources.identity import Identity
from balanced_source_operator.resources.kinds import CONFIG_MAP, ROLE, ROLE_BINDING, ResourceKind
from balanced_source_operator.runtime.observed import Observed
from balanced_source_operator.runtime.ownership import checked, create_or_adopt


class DriverAccess:
    """Of one host of a source."""

    def __init__(self, api: KubernetesApi, source: Identity, observed: Observed) -> None:
        self._api = api
        self._source = source
        self._observed = observed

    async def give(self, accounts: Collection[str]) -> None:
        """Create or repair what is missing or differs.

        Args:
            accounts: service accounts of the drivers.

        Raises:
            KubernetesError: the API server does not answer, or refused.
        """
        name = self._source.documents.readers
        if self._observed.get(CONFIG_MAP, name) is None:
            report = config_map(self._source, name, None)
            await create_or_adopt(self._api, self._observed, CONFIG_MAP, report)
        await self._grant(ROLE, role(self._source))
        await self._grant(ROLE_BINDING, role_binding(self._source, accounts))

    async def _grant(self, kind: ResourceKind, manifest: Manifest) -> None:
        """Create or repair an object, unless one of that name belongs to someone else.

        Writes only what differs.
        """
        name, source = manifest["metadata"]["name"], self._source
        seen = self._observed.get(kind, name)
        if seen is not None and source.is_marked(seen) and grants_the_same(seen, manifest):
            return
        # The apply below is forced: without a look it would take over an object of someone else.
        if (found := await self._api.get(kind, source.namespace, name)) is not None:
            checked(source, kind, found)
        self._observed.note(kind, "MODIFIED", await self._api.apply(kind, manifest))
