"""Is the operator ready, and would the API server take a BalancedSource? Nothing is stored."""

import json
import os
import ssl
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_PATIENCE = 60.0
"""Seconds for which the operator may not be ready yet: an installation need not have waited."""


def ask(path: str, body: str | None = None) -> Any:
    """Get a path of the API server, or post something there.

    Raises:
        urllib.error.HTTPError: it refuses.
    """
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
    host = f"[{host}]" if ":" in host else host
    headers = {
        "Authorization": f"Bearer {(_ACCOUNT / 'token').read_text()}",
        "Content-Type": "application/json",
    }
    request = urllib.request.Request(
        f"https://{host}:{port}{path}",
        data=None if body is None else body.encode(),
        headers=headers,
        method="GET" if body is None else "POST",
    )
    context = ssl.create_default_context(cafile=str(_ACCOUNT / "ca.crt"))
    with urllib.request.urlopen(request, timeout=30, context=context) as reply:  # noqa: S310
        return json.load(reply)


def is_available(deployment: Any) -> bool:
    """Return whether all replicas of the newest version are ready."""
    status, wanted = deployment.get("status", {}), deployment["spec"].get("replicas", 1)
    is_seen = status.get("observedGeneration", 0) >= deployment["metadata"]["generation"]
    ready = min(status.get("updatedReplicas", 0), status.get("availableReplicas", 0))
    return bool(is_seen and ready >= wanted)


def main(release: str, deployment: str, namespace: str, manifest: str) -> None:
    """Ask both; end with an error message if the answer to one is no.

    Args:
        release: namespace of the release.
        deployment: of the operator.
        namespace: where a source would be created.
        manifest: of the source.
    """
    try:
        until = time.monotonic() + _PATIENCE
        while not is_available(ask(f"/apis/apps/v1/namespaces/{release}/deployments/{deployment}")):
            if time.monotonic() > until:
                sys.exit(
                    f"the operator is not ready after {_PATIENCE:.0f} s. Its log says why:"
                    f" kubectl logs -n {release} deployment/{deployment}"
                )
            time.sleep(1)
        print(f"the operator {deployment} is ready")
        place = f"/apis/balancedsource.io/v1alpha1/namespaces/{namespace}/balancedsources"
        taken = ask(f"{place}?dryRun=All", manifest)
    except urllib.error.HTTPError as error:
        sys.exit(f"refused: {error.code} {error.read().decode()}")
    print(f"the API server takes {taken['kind']} {taken['metadata']['name']}")


if __name__ == "__main__":
    main(*sys.argv[1:])
