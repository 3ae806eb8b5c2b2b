"""Asks the API server whether it would take a BalancedSource, without storing it."""

import json
import os
import ssl
import sys
import urllib.error
import urllib.request
from pathlib import Path

_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def main(namespace: str, manifest: str) -> None:
    """Post the manifest as a dry run; ends with an error message if it is refused."""
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
    host = f"[{host}]" if ":" in host else host
    path = f"/apis/balancedsource.io/v1alpha1/namespaces/{namespace}/balancedsources?dryRun=All"
    headers = {
        "Authorization": f"Bearer {(_ACCOUNT / 'token').read_text()}",
        "Content-Type": "application/json",
    }
    request = urllib.request.Request(
        f"https://{host}:{port}{path}", data=manifest.encode(), headers=headers, method="POST"
    )
    context = ssl.create_default_context(cafile=str(_ACCOUNT / "ca.crt"))
    try:
        with urllib.request.urlopen(request, timeout=30, context=context) as reply:  # noqa: S310
            taken = json.load(reply)
    except urllib.error.HTTPError as error:
        sys.exit(f"refused: {error.code} {error.read().decode()}")
    print(f"the API server takes {taken['kind']} {taken['metadata']['name']}")


main(*sys.argv[1:])
