"""A connection to the cluster that kubectl would talk to, for commands.

In a pod without a kubeconfig it is the pod's own cluster, with the rights of its service account.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from kubernetes_asyncio import config
from kubernetes_asyncio.client import Configuration

from balanced_source.errors import InvalidSpecError
from balanced_source_operator.kube.client import KubernetesClient
from balanced_source_operator.kube.session import open_client

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where a pod finds token, certificate and namespace of its service account."""


class NoKubeconfigError(InvalidSpecError):
    """There is no configuration of kubectl on this machine."""


@asynccontextmanager
async def connect(
    *, context: str = "", otherwise: str = ""
) -> AsyncIterator[tuple[KubernetesClient, str]]:
    """The client and the namespace of a context of kubectl's configuration, or of this pod.

    Args:
        context: name of the context; the current one if it is empty.
        otherwise: what else the user can do if there is no kubeconfig, such as an option to set.

    Raises:
        NoKubeconfigError: there is no kubeconfig.
        InvalidSpecError: kubectl's configuration cannot be read.
    """
    configuration = Configuration()
    # Looked for here: the library logs a warning, and then reports a missing context.
    if _has_file():
        namespace = await _from_kubeconfig(configuration, context)
    elif _is_in_pod() and not context:
        namespace = _from_pod(configuration)
    else:
        advice = ", or ".join(filter(None, ["log in to a cluster", otherwise]))
        raise NoKubeconfigError(
            f"no kubeconfig found. Set KUBECONFIG, or {advice}", field=f"kubeconfig {_path()}"
        )
    async with open_client(configuration) as client:
        yield KubernetesClient(client), namespace


async def _from_kubeconfig(configuration: Configuration, context: str) -> str:
    """Fill in what kubectl's configuration says; returns the namespace of the context."""
    try:
        await config.load_kube_config(client_configuration=configuration, context=context or None)
        contexts, active = config.list_kube_config_contexts()
    except Exception as error:  # a damaged file raises almost any type
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InvalidSpecError(
            f"cannot be used: {reason}. Set KUBECONFIG, or log in to a cluster",
            field=f"kubeconfig {_path()}",
        ) from error
    chosen: Any = next((c for c in contexts if c.get("name") == context), active)
    return str(chosen.get("context", {}).get("namespace") or "default")


def _from_pod(configuration: Configuration) -> str:
    """Fill in what the pod's service account says; returns the namespace of the pod."""
    try:
        config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
        return (SERVICE_ACCOUNT / "namespace").read_text().strip()
    except (config.ConfigException, OSError) as error:
        raise InvalidSpecError(
            f"cannot be used: {error}", field=f"service account in {SERVICE_ACCOUNT}"
        ) from error


def _is_in_pod() -> bool:
    """Whether nothing names a cluster but the pod that this process runs in."""
    names = os.environ.get("KUBECONFIG"), os.environ.get("KUBERNETES_SERVICE_HOST")
    return not names[0] and bool(names[1]) and (SERVICE_ACCOUNT / "token").exists()


def _has_file() -> bool:
    return any(Path(path).expanduser().exists() for path in _path().split(os.pathsep) if path)


def _path() -> str:
    return os.environ.get("KUBECONFIG") or str(Path("~/.kube/config").expanduser())
