"""The ConfigMap of ``clustersFrom``: not ours, so it has no label to watch it by; read again every few seconds."""

import time
from typing import Final

from balanced_source_operator.kube.port import KubernetesApi
from balanced_source_operator.resources.kinds import CONFIG_MAP
from balanced_source_operator.spec import BalancedSourceSpec

INTERVAL: Final = 10.0
"""Seconds between two looks."""


class MetadataReader:
    """Keeps what was read last. Used by one task."""

    def __init__(self, api: KubernetesApi, namespace: str) -> None:
        self._api = api
        self._namespace = namespace
        self._read_at = -INTERVAL
        self._source: tuple[str, str] | None = None
        self._content: str | None = None

    async def read(self, spec: BalancedSourceSpec) -> str | None:
        """The metadata that the spec names; None if it names none, or there is none.

        Raises:
            KubernetesError: the API server refused, or does not answer.
        """
        clusters_from = spec.source.kafka.clusters_from
        if clusters_from is None:
            return None
        reference = clusters_from.config_map_ref
        source, now = (reference.name, reference.key), time.monotonic()
        if source != self._source or now - self._read_at >= INTERVAL:
            found = await self._api.get(CONFIG_MAP, self._namespace, reference.name)
            self._content = ((found or {}).get("data") or {}).get(reference.key)
            self._source, self._read_at = source, now
        return self._content

    @staticmethod
    def pause(spec: BalancedSourceSpec | None) -> float | None:
        """Seconds until the next look is due; None if there is nothing to look at."""
        return None if spec is None or spec.source.kafka.clusters_from is None else INTERVAL
