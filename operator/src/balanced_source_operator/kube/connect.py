"""A connection to the cluster that kubectl would talk to, for commands."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from kubernetes_asyncio import config
from kubernetes_asyncio.client import ApiClient, Configuration

from balanced_source.errors import InvalidSpecError
from balanced_source_operator.kube.client import KubernetesClient


class NoKubeconfigError(InvalidSpecError):
    """There is no configuration of kubectl on this machine."""


@asynccontextmanager
async def connect(
    *, context: str = "", otherwise: str = ""
) -> AsyncIterator[tuple[KubernetesClient, str]]:
    """The client and the namespace of a context of kubectl's configuration.

    Args:
        context: name of the context; the current one if it is empty.
        otherwise: what else the user can do if there is no kubeconfig, such as an option to set.

    Raises:
        NoKubeconfigError: there is no kubeconfig.
        InvalidSpecError: kubectl's configuration cannot be read.
    """
    # Looked for here: the library logs a warning, and then reports a missing context.
    if not _has_file():
        advice = ", or ".join(filter(None, ["log in to a cluster", otherwise]))
        raise NoKubeconfigError(
            f"no kubeconfig found. Set KUBECONFIG, or {advice}", field=f"kubeconfig {_path()}"
        )
    configuration = Configuration()
    try:
        await config.load_kube_config(client_configuration=configuration, context=context or None)
        contexts, active = config.list_kube_config_contexts()
    except Exception as error:  # a damaged file raises almost any type
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InvalidSpecError(
            f"cannot be used: {reason}. Set KUBECONFIG, or log in to a cluster",
            field=f"kubeconfig {_path()}",
        ) from error
    chosen = next((c for c in contexts if c.get("name") == context), active)
    async with ApiClient(configuration) as client:
        yield KubernetesClient(client), _namespace(chosen)


def _namespace(context: Any) -> str:
    return str(context.get("context", {}).get("namespace") or "default")


def _has_file() -> bool:
    return any(Path(path).expanduser().exists() for path in _path().split(os.pathsep) if path)


def _path() -> str:
    return os.environ.get("KUBECONFIG") or str(Path("~/.kube/config").expanduser())
