"""ConfigMaps that a spec refers to: not ours, so they have no label to watch them by.

Read again every few seconds.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Final

from balanced_source_operator.contract.half import TextReference, Texts
from balanced_source_operator.controller.translate import texts_of
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
        self._texts: Mapping[TextReference, str | None] = {}

    async def read(self, spec: BalancedSourceSpec) -> Texts:
        """Return the texts that the spec refers to.

        Raises:
            KubernetesError: the API server refused, or does not answer.
        """
        references, now = texts_of(spec), time.monotonic()
        if self._texts.keys() != set(references) or now - self._read_at >= INTERVAL:
            self._texts = await read_texts(self._api, self._namespace, references)
            self._read_at = now
        return self._texts

    @staticmethod
    def pause(spec: BalancedSourceSpec | None) -> float | None:
        """Return the seconds until the next look is due; None if there is nothing to look at."""
        return None if spec is None or not texts_of(spec) else INTERVAL


async def read_texts(
    api: KubernetesApi, namespace: str, references: Sequence[TextReference]
) -> dict[TextReference, str | None]:
    """Return the texts in ConfigMaps.

    Raises:
        KubernetesError: the API server refused, or does not answer.
    """
    found = {}
    for reference in references:
        manifest = await api.get(CONFIG_MAP, namespace, reference.name)
        found[reference] = ((manifest or {}).get("data") or {}).get(reference.key)
    return found
