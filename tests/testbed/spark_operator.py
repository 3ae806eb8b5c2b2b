"""Kubeflow's spark-operator, out of cluster, with the real spark-submit.

It runs as a user of its own with the rights that its chart grants, so what a SparkApplication is
refused here it is refused in a cluster too. One thing follows at once: Spark 4.2 and newer create a
NetworkPolicy at submission, which the chart does not allow. An application must leave that step
out: `spark.kubernetes.driver.pod.excludedFeatureSteps`.
"""

import json
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from testbed.builds import SPARK_OPERATOR_FILES, Builder
from testbed.control_plane import SPARK_OPERATOR
from testbed.errors import MissingPrerequisiteError
from testbed.java import java_home, jvm_environment
from testbed.kubectl import Kubectl
from testbed.ports import LOOPBACK, PortPool
from testbed.process_node import sandbox
from testbed.process_node.namespaces import mount_namespace_command
from testbed.processes import Child

CRDS = (
    "sparkapplications.sparkoperator.k8s.io",
    "scheduledsparkapplications.sparkoperator.k8s.io",
    "sparkconnects.sparkoperator.k8s.io",
)
SERVICE_ACCOUNT = "spark"
_START_TIMEOUT = 60.0
# where the operator writes pod templates; the path is fixed in its code
_SUBMISSION_FOLDER = Path("/tmp/spark")  # noqa: S108


class SparkOperator:
    """The operator's controller; its webhook is not run.

    Args:
        control_plane: where it works; it must have started.
        spark_home: the Spark whose `bin/spark-submit` is used.
        ports: where a free port comes from.
        builder: where the program and the custom resources come from.
        namespaces: that it watches; all if empty.
        detach: whether it shall outlive this process.
    """

    def __init__(
        self,
        control_plane: Kubectl,
        spark_home: Path,
        *,
        ports: PortPool,
        builder: Builder,
        namespaces: Sequence[str] = (),
        detach: bool = False,
    ) -> None:
        self._control_plane = control_plane
        self._supervisor = control_plane.supervisor
        self._spark_home = spark_home
        self._port = ports.take()
        self._builder = builder
        self._namespaces = namespaces
        self._detach = detach
        self._folder = control_plane.run_dir / "spark-operator"
        self._child: Child | None = None

    def start(self) -> None:
        """Apply what it needs and start it; about 2 s."""
        files = self._builder.ensure(SPARK_OPERATOR_FILES)[SPARK_OPERATOR_FILES]
        self._control_plane.apply(files / "crds")
        for crd in CRDS:  # it ends at once if one of them cannot be used yet
            self._control_plane.wait_established(crd)
        self._control_plane.apply(_list_of(_controller_role()))
        self.prepare_namespace("default")
        self._child = self._supervisor.start(
            "spark-operator", self._command(), env=self._environment()
        )
        self._supervisor.wait_ready(self._child, self._ready, _START_TIMEOUT)

    def stop(self) -> None:
        """End it, and a spark-submit that is under way."""
        if self._child:
            self._supervisor.stop(self._child)
            self._child = None

    def kill(self) -> None:
        """Let it crash (SIGKILL)."""
        if self._child:
            self._supervisor.kill(self._child)
            self._child = None

    def prepare_namespace(self, namespace: str) -> None:
        """Make the service account that drivers run as, with the rights that the chart grants."""
        self._control_plane.apply(_list_of(driver_role(namespace)))

    def _ready(self) -> bool:
        try:
            with urllib.request.urlopen(
                f"http://{LOOPBACK}:{self._port}/readyz", timeout=2
            ) as reply:
                return bool(reply.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def _flags(self) -> list[str]:
        watched = [f"--namespaces={','.join(self._namespaces)}"] if self._namespaces else []
        return [
            "controller",
            "start",
            f"--kubeconfig={self._control_plane.kubeconfig(SPARK_OPERATOR)}",
            *watched,
            "--leader-election=false",
            "--metrics-bind-address=0",
            "--enable-ui-service=false",
            f"--health-probe-bind-address={LOOPBACK}:{self._port}",
            # a submission takes 10 s and more on a busy machine
            "--driver-pod-creation-grace-period=60s",
            "--cache-sync-timeout=60s",
            "--zap-log-level=info",
        ]

    def _command(self) -> list[str]:
        """The controller in a mount namespace where its submission folder is its own."""
        program = self._builder.ensure("spark-operator")["spark-operator"]
        for name in ("home", "submissions", "root"):
            (self._folder / name).mkdir(parents=True, exist_ok=True)
        argv = [str(program), *self._flags()]
        unshare = mount_namespace_command()
        if unshare is None:
            _check_submission_folder()
            return argv
        spec = {
            "argv": argv,
            "cwd": str(self._folder / "home"),
            "parent": None if self._detach else os.getpid(),
            "root": str(self._folder / "root"),
            "binds": {str(_SUBMISSION_FOLDER): str(self._folder / "submissions")},
        }
        file = self._folder / "sandbox.json"
        file.write_text(json.dumps(spec))
        return [*unshare, sys.executable, "-I", "-S", str(sandbox.__file__), str(file)]

    def _environment(self) -> dict[str, str]:
        return {
            "PATH": os.pathsep.join([str(java_home() / "bin"), os.environ.get("PATH", os.defpath)]),
            "HOME": str(self._folder / "home"),
            "LANG": "C.UTF-8",
            "JAVA_HOME": str(java_home()),
            "SPARK_HOME": str(self._spark_home),
            "KUBECONFIG": str(self._control_plane.kubeconfig(SPARK_OPERATOR)),
            "KUBERNETES_SERVICE_HOST": LOOPBACK,
            "KUBERNETES_SERVICE_PORT": str(self._control_plane.port),
            **jvm_environment(),
        }


def driver_role(namespace: str) -> list[dict[str, Any]]:
    """Service account, role and binding of drivers in a namespace."""
    verbs = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
    rules = [_rule("", ("pods", "configmaps", "persistentvolumeclaims", "services"), verbs)]
    metadata = {"name": SERVICE_ACCOUNT, "namespace": namespace}
    subject = {"kind": "ServiceAccount", **metadata}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata},
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": metadata,
            "rules": rules,
        },
        _binding("RoleBinding", "Role", metadata, subject),
    ]


def _controller_role() -> list[dict[str, Any]]:
    """Role and binding of the controller, with the rules of its chart."""
    read = ("get", "list", "watch")
    group = "sparkoperator.k8s.io"
    kinds = ("sparkapplications", "scheduledsparkapplications", "sparkconnects")
    rules = [
        _rule("", ("pods",), (*read, "create", "update", "delete")),
        _rule("", ("configmaps",), (*read, "create", "update", "patch")),
        _rule("", ("services",), (*read, "create", "update", "patch", "delete")),
        _rule("", ("events",), ("create", "update", "patch")),
        _rule("networking.k8s.io", ("ingresses",), ("get", "create", "update", "delete")),
        _rule("apiextensions.k8s.io", ("customresourcedefinitions",), ("get",)),
        _rule(group, ("sparkapplications",), (*read, "create", "delete")),
        _rule(group, kinds[1:], read),
        _rule(group, [f"{kind}/status" for kind in kinds], ("update",)),
        _rule(group, [f"{kind}/finalizers" for kind in kinds], ("update",)),
    ]
    metadata = {"name": SPARK_OPERATOR}
    subject = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": SPARK_OPERATOR}
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": metadata,
    }
    return [
        {**role, "rules": rules},
        _binding("ClusterRoleBinding", "ClusterRole", metadata, subject),
    ]


def _rule(group: str, resources: Iterable[str], verbs: Iterable[str]) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}


def _binding(
    kind: str, role: str, metadata: Mapping[str, str], subject: Mapping[str, str]
) -> dict[str, Any]:
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": role, "name": metadata["name"]}
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": dict(metadata),
        "roleRef": reference,
        "subjects": [dict(subject)],
    }


def _list_of(items: list[dict[str, Any]]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "List", "items": items}


def _check_submission_folder() -> None:
    """Without a mount namespace all testbeds of the machine share the folder."""
    _SUBMISSION_FOLDER.mkdir(exist_ok=True)
    if not os.access(_SUBMISSION_FOLDER, os.W_OK):
        raise MissingPrerequisiteError(
            f"the spark-operator must write to {_SUBMISSION_FOLDER}, which belongs to somebody"
            " else, and this machine has no mount namespaces to give it another one. Allow user"
            " namespaces or remove the folder."
        )
