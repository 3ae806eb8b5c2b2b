"""A connection to the cluster that kubectl would talk to, for commands."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import yaml
from kubernetes_asyncio import config
from kubernetes_asyncio.client import ApiClient, Configuration
from kubernetes_asyncio.config.config_exception import ConfigException

from balanced_source.errors import InvalidSpecError
from balanced_source_operator.kube.client import KubernetesClient


@asynccontextmanager
async def connect() -> AsyncIterator[tuple[KubernetesClient, str]]:
    """The client and the namespace of kubectl's current context.

    Raises:
        InvalidSpecError: kubectl's configuration cannot be read.
    """
    configuration = Configuration()
    try:
        await config.load_kube_config(client_configuration=configuration)
        _, active = config.list_kube_config_contexts()
    except (ConfigException, OSError, yaml.YAMLError) as error:
        raise InvalidSpecError(f"cannot be read: {error}", field=_path()) from error
    async with ApiClient(configuration) as client:
        yield KubernetesClient(client), _namespace(active)


def _namespace(context: Any) -> str:
    return str(context.get("context", {}).get("namespace") or "default")


def _path() -> str:
    return os.environ.get("KUBECONFIG") or str(Path("~/.kube/config").expanduser())
