"""Secrets of a source's namespace, read when they are needed and kept in memory only."""

import base64
from collections.abc import Iterable, Mapping

from balanced_source_adapters.mounted_secrets import texts
from balanced_source_operator.kube.port import KubernetesApi
from balanced_source_operator.resources.kinds import SECRET


class SecretCache:
    """A `SecretReader` that the event loop fills and worker threads read."""

    def __init__(self, api: KubernetesApi, namespace: str) -> None:
        self._api = api
        self._namespace = namespace
        self._values: dict[str, Mapping[str, str]] = {}

    async def load(self, names: Iterable[str]) -> None:
        """Read the Secrets again; one that is gone is forgotten.

        Raises:
            KubernetesError: the API server refused, or does not answer.
        """
        for name in names:
            found = await self._api.get(SECRET, self._namespace, name)
            if found is None:
                self._values.pop(name, None)
            else:
                data = found.get("data") or {}
                self._values[name] = texts(
                    {key: base64.b64decode(value) for key, value in data.items()}
                )

    def read(self, name: str) -> Mapping[str, str]:
        """Returns the keys of a Secret that was loaded, with their values.

        Raises:
            LookupError: there is no such Secret.
        """
        if name not in self._values:
            raise LookupError(
                f"secret {name} does not exist in namespace {self._namespace}: create it"
            )
        return self._values[name]
