"""A cluster as kubectl sees it, wherever it runs."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from testbed.commands import run
from testbed.errors import CommandError, TestbedError
from testbed.processes import Supervisor
from testbed.waiting import wait_until

ADMIN = "admin"


class Kubectl:
    """Commands and objects of one cluster.

    Args:
        run_dir: gets what kubectl remembers, which would land in the home folder otherwise.
        supervisor: of the processes in and beside the cluster.
    """

    def __init__(self, run_dir: Path, supervisor: Supervisor) -> None:
        self.run_dir = run_dir
        self.supervisor = supervisor

    @property
    def port(self) -> int:
        """Of the API server, on loopback."""
        raise NotImplementedError

    @property
    def program(self) -> Path:
        """The program `kubectl`."""
        raise NotImplementedError

    def kubeconfig(self, user: str = ADMIN) -> Path:
        """The kubeconfig file of a user.

        Raises:
            TestbedError: there is no such user.
        """
        raise TestbedError(f"there is no user {user!r}")

    def kubectl(
        self, *arguments: str, stdin: str | None = None, user: str = ADMIN, timeout: float = 120
    ) -> str:
        """Run kubectl and return its standard output.

        Args:
            arguments: of kubectl.
            stdin: its standard input.
            user: whose kubeconfig it uses.
            timeout: seconds.

        Raises:
            CommandError: it failed; `stderr` has its message.
        """
        settings = {
            "KUBECONFIG": str(self.kubeconfig(user)),
            "KUBECACHEDIR": str(self.run_dir / "kube-cache"),
        }
        return run([self.program, *arguments], env=settings, stdin=stdin, timeout=timeout)

    def apply(self, manifest: Path | str | Mapping[str, Any], *, user: str = ADMIN) -> None:
        """Apply manifests on the server's side: a file or folder, YAML text, or one object."""
        command = ["apply", "--server-side", "--force-conflicts", "--field-manager=testbed", "-f"]
        if isinstance(manifest, Path):
            self.kubectl(*command, str(manifest), user=user)
        else:
            text = manifest if isinstance(manifest, str) else json.dumps(manifest)
            self.kubectl(*command, "-", stdin=text, user=user)

    def get(self, resource: str, name: str, namespace: str = "default") -> dict[str, Any] | None:
        """One object, or None if it does not exist."""
        told = self.kubectl(
            "get", resource, name, "-n", namespace, "-o", "json", "--ignore-not-found"
        )
        return cast("dict[str, Any]", json.loads(told)) if told.strip() else None

    def items(
        self, resource: str, namespace: str = "default", selector: str = ""
    ) -> list[dict[str, Any]]:
        """All objects of a resource in a namespace that carry the labels of the selector."""
        told = self.kubectl("get", resource, "-n", namespace, "-l", selector, "-o", "json")
        return cast("list[dict[str, Any]]", json.loads(told)["items"])

    def wait_established(self, crd: str, timeout: float = 30) -> None:
        """Wait until a custom resource can be used.

        Polls, because `kubectl wait` may fail on a definition that has no conditions yet.
        """
        path = '{.status.conditions[?(@.type=="Established")].status}'
        wait_until(
            lambda: self.kubectl("get", "crd", crd, "-o", f"jsonpath={path}") == "True",
            timeout,
            f"{crd} to be established",
            ignoring=(CommandError,),
        )
