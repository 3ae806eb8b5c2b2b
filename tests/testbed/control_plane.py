"""A Kubernetes control plane on loopback: etcd, kube-apiserver and kube-controller-manager.

Real schemas, CEL, server-side apply, RBAC, garbage collection and namespaces; no scheduler and no
node: pods stay pending until something (such as the process node) takes them.
"""

import signal
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import cast

from testbed import pki
from testbed.builds import Builder
from testbed.errors import CommandError, TestbedError
from testbed.etcd_data import EtcdData
from testbed.kubectl import ADMIN, Kubectl
from testbed.ports import LOOPBACK, PortPool
from testbed.processes import Child, Supervisor
from testbed.progress import QUIET, Progress
from testbed.started import Started

NODE = "process-node"
REAL_NODE = "node1"
KUBELET = f"system:node:{REAL_NODE}"
SCHEDULER = "system:kube-scheduler"
PROXY = "system:kube-proxy"
SPARK_OPERATOR = "spark-operator"
_CONTROLLER_MANAGER = "system:kube-controller-manager"
_TOKEN_USERS: Mapping[str, tuple[str, ...]] = {
    ADMIN: ("system:masters",),
    NODE: ("system:masters",),
    SPARK_OPERATOR: (),
    _CONTROLLER_MANAGER: (),
    KUBELET: ("system:nodes",),
    SCHEDULER: (),
    PROXY: (),
}
_SERVICE_NAMES = (
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)
_SERVICES = "10.96.0.0/16"
_FIRST_SERVICE = "10.96.0.1"  # the address of the service `kubernetes`
_CONTROLLERS = (
    "clusterrole-aggregation-controller",
    "deployment-controller",
    "disruption-controller",
    "endpointslice-controller",
    "garbage-collector-controller",
    "horizontal-pod-autoscaler-controller",
    "job-controller",
    "namespace-controller",
    "node-lifecycle-controller",
    "pod-garbage-collector-controller",
    "replicaset-controller",
    "resourcequota-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
    "statefulset-controller",
    "taint-eviction-controller",
)
_FRONT_PROXY = "front-proxy-client"
_START_TIMEOUT = 240.0  # a busy machine must not fail a test
__all__ = [
    "ADMIN",
    "KUBELET",
    "NODE",
    "PROXY",
    "REAL_NODE",
    "SCHEDULER",
    "SPARK_OPERATOR",
    "ControlPlane",
]
PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kubectl")


class ControlPlane(Kubectl, Started):
    """One control plane; a context manager that starts and stops it.

    Args:
        run_dir: gets certificates, kubeconfigs, logs and pid files; made if missing.
        supervisor: runs the processes; an own one if None.
        ports: where free ports come from; an own pool if None.
        builder: where the programs come from.
        progress: told about each step of the start.
        crds: custom resources to apply before the controllers start: the garbage collector looks
            for new ones only every 30 s, and does not collect what they own before.
        address: where pods of a real node reach the API server; then the service `kubernetes` leads
            there, and all controllers run. None: nothing but this machine's own processes come,
            over loopback.

    Attributes:
        server: URL of the API server.
        ca: signs all certificates of this testbed.
    """

    def __init__(
        self,
        run_dir: Path,
        *,
        supervisor: Supervisor | None = None,
        ports: PortPool | None = None,
        builder: Builder | None = None,
        progress: Progress = QUIET,
        crds: Iterable[Path] = (),
        address: str | None = None,
    ) -> None:
        super().__init__(run_dir, supervisor or Supervisor(run_dir))
        self._address = address
        self._own_ports = PortPool()
        ports = ports or self._own_ports
        self._builder = builder or Builder(progress=progress)
        self._progress = progress
        self._crds = tuple(crds)
        self._pki = run_dir / "pki"
        self._etcd_data = EtcdData(run_dir)
        self._children: dict[str, Child] = {}
        self._tokens = {user: pki.new_token() for user in _TOKEN_USERS}
        self.ca = pki.CertificateAuthority("balanced-source testbed")
        self._port = ports.take()
        self._etcd_port = ports.take()
        self.server = f"https://{LOOPBACK}:{self._port}"

    def end(self, error: BaseException | None) -> None:
        self.stop()

    @property
    def port(self) -> int:
        """Of the API server; the same over restarts."""
        return self._port

    @property
    def program(self) -> Path:
        return self._programs["kubectl"]

    @property
    def ca_file(self) -> Path:
        """Certificate of the authority, PEM."""
        return self._pki / "ca.crt"

    def start(self) -> None:
        """Start all three parts and wait until they serve; 3 to 5 s."""
        self._programs = self._builder.ensure(*PROGRAMS)
        self._write_pki()
        with self._progress.step("start etcd and kube-apiserver"):
            self._start_etcd()
            self.start_apiserver()
        if self._crds:
            with self._progress.step("apply custom resources"):
                for crd in self._crds:
                    self.apply(crd)
        with self._progress.step("start kube-controller-manager"):
            self._start_controller_manager()

    def stop(self) -> None:
        """End all parts and delete etcd's data; logs stay."""
        # all clients first: the API server would wait for their watches
        for name in ("kube-controller-manager", "kube-apiserver", "etcd"):
            if child := self._children.pop(name, None):
                self.supervisor.stop(child)
        self._etcd_data.delete()
        self._own_ports.close()

    def kill_apiserver(self) -> None:
        """An outage of the API server, at once and without farewell (SIGKILL)."""
        self.supervisor.kill(self._children.pop("kube-apiserver"))

    def signal_apiserver(self, number: signal.Signals) -> None:
        """Send a signal to the API server: SIGSTOP makes it silent, SIGCONT brings it back."""
        self._children["kube-apiserver"].signal(number)

    def start_apiserver(self, *extra: str) -> None:
        """Start the API server, also again after `kill_apiserver`, and wait until it is ready.

        Args:
            extra: further flags.
        """
        child = self.supervisor.start(
            "kube-apiserver",
            [self._programs["kube-apiserver"], *self._apiserver_flags(), *extra],
            # on SIGTERM it waits a minute for open watches; etcd holds the state, so nothing is
            # lost
            stop_signal=signal.SIGKILL,
        )
        self._children["kube-apiserver"] = child
        self.supervisor.wait_ready(child, self.ready, _START_TIMEOUT)

    def ready(self) -> bool:
        """Whether the API server says that it is ready."""
        context = ssl.create_default_context(cafile=str(self.ca_file))
        headers = {"Authorization": f"Bearer {self._tokens[ADMIN]}"}
        # Https only
        request = urllib.request.Request(f"{self.server}/readyz", headers=headers)  # noqa: S310
        try:
            with urllib.request.urlopen(request, timeout=2, context=context) as reply:  # noqa: S310
                return cast("bool", reply.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def kubeconfig(self, user: str = ADMIN) -> Path:
        """The kubeconfig file of a built-in user or of one made by `create_user`."""
        path = self._pki / f"{user.replace(':', '-')}.kubeconfig"
        if not path.exists():
            raise TestbedError(f"there is no user {user!r}; make it with create_user")
        return path

    def token(self, user: str) -> str:
        """The bearer token of a built-in user."""
        return self._tokens[user]

    def create_user(self, name: str, groups: Iterable[str] = ()) -> Path:
        """Make a user, at any time, and return its kubeconfig; it has a client certificate."""
        certificate, key = self.ca.issue_client(name, groups).write(
            self._pki, name.replace(":", "-")
        )
        return self._write_kubeconfig(
            name, {"client-certificate": str(certificate), "client-key": str(key)}
        )

    def _write_pki(self) -> None:
        self._pki.mkdir(parents=True, exist_ok=True)
        self.ca_file.write_text(self.ca.certificate)
        # of its own, or every client of the API server could pose as it
        front = pki.CertificateAuthority("balanced-source testbed front proxy")
        (self._pki / "front-proxy-ca.crt").write_text(front.certificate)
        front.issue_client(_FRONT_PROXY).write(self._pki, "front-proxy")
        addresses = [self._address] if self._address else []
        names = (LOOPBACK, _FIRST_SERVICE, "localhost", *_SERVICE_NAMES, *addresses)
        self.ca.issue_server("kube-apiserver", names).write(self._pki, "apiserver")
        private, public = pki.service_account_keys()
        pki.write_private(self._pki / "service-accounts.key", private)
        (self._pki / "service-accounts.pub").write_text(public)
        users = [(self._tokens[user], user, groups) for user, groups in _TOKEN_USERS.items()]
        pki.write_private(self._pki / "tokens.csv", pki.token_file(users))
        for user, token in self._tokens.items():
            self._write_kubeconfig(user, {"token": token})

    def _write_kubeconfig(self, user: str, credentials: dict[str, str]) -> Path:
        text = pki.kubeconfig(
            server=self.server, ca_file=self.ca_file, user=user, credentials=credentials
        )
        path = self._pki / f"{user.replace(':', '-')}.kubeconfig"
        pki.write_private(path, text)
        return path

    def _start_etcd(self) -> None:
        url = f"http://{LOOPBACK}:{self._etcd_port}"
        peer = f"http://{LOOPBACK}:2380"  # only a name: a single member listens on any free port
        flags = [
            "--name=testbed",
            f"--data-dir={self._etcd_data.create()}",
            f"--listen-client-urls={url}",
            f"--advertise-client-urls={url}",
            f"--listen-peer-urls=http://{LOOPBACK}:0",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=testbed={peer}",
            "--log-level=warn",
            "--unsafe-no-fsync",
        ]
        self._children["etcd"] = self.supervisor.start("etcd", [self._programs["etcd"], *flags])

    def _apiserver_flags(self) -> list[str]:
        return [
            f"--etcd-servers=http://{LOOPBACK}:{self._etcd_port}",
            f"--secure-port={self.port}",
            *self._reached_by(),
            f"--tls-cert-file={self._pki}/apiserver.crt",
            f"--tls-private-key-file={self._pki}/apiserver.key",
            f"--client-ca-file={self.ca_file}",
            f"--token-auth-file={self._pki}/tokens.csv",
            "--authorization-mode=Node,RBAC",
            f"--service-cluster-ip-range={_SERVICES}",
            "--allow-privileged=true",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={self._pki}/service-accounts.pub",
            f"--service-account-signing-key-file={self._pki}/service-accounts.key",
            # otherwise logs and exec ask for the node's host name
            "--kubelet-preferred-address-types=InternalIP,Hostname",
            *self._front_proxy(),
            f"--kubelet-certificate-authority={self.ca_file}",
            "--enable-priority-and-fairness=false",
            "--v=1",
        ]

    def _front_proxy(self) -> list[str]:
        """Flags with which servers of further APIs believe who a request comes from."""
        return [
            f"--proxy-client-cert-file={self._pki}/front-proxy.crt",
            f"--proxy-client-key-file={self._pki}/front-proxy.key",
            f"--requestheader-client-ca-file={self._pki}/front-proxy-ca.crt",
            f"--requestheader-allowed-names={_FRONT_PROXY}",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        ]

    def _reached_by(self) -> list[str]:
        if self._address is None:
            # there is no second API server to tell about this one, and no pod that uses the service
            return [f"--bind-address={LOOPBACK}", "--endpoint-reconciler-type=none"]
        return [
            "--bind-address=0.0.0.0",
            f"--advertise-address={self._address}",
            "--endpoint-reconciler-type=lease",
        ]

    def _start_controller_manager(self) -> None:
        flags = [
            f"--kubeconfig={self.kubeconfig(_CONTROLLER_MANAGER)}",
            "--leader-elect=false",
            # with the default limits the first service account takes seconds
            "--kube-api-qps=500",
            "--kube-api-burst=1000",
            # by default it looks at metrics every 15 s
            "--horizontal-pod-autoscaler-sync-period=2s",
            "--secure-port=0",
            "--use-service-account-credentials=true",
            f"--service-account-private-key-file={self._pki}/service-accounts.key",
            f"--root-ca-file={self.ca_file}",
            f"--controllers={'*' if self._address else ','.join(_CONTROLLERS)}",
            "--v=1",
        ]
        program = self._programs["kube-controller-manager"]
        child = self.supervisor.start("kube-controller-manager", [program, *flags])
        self._children["kube-controller-manager"] = child
        self.supervisor.wait_ready(
            child,
            lambda: self.get("serviceaccounts", "default"),
            _START_TIMEOUT,
            ignoring=(CommandError,),
        )
