"""What makes a node of containerd: kubelet, kube-proxy, scheduler, and the cluster's DNS."""

from pathlib import Path
from typing import Any

import yaml

from testbed.builds import Builder
from testbed.control_plane import KUBELET, PROXY, REAL_NODE, SCHEDULER, ControlPlane
from testbed.errors import CommandError
from testbed.node.containers import SOCKET
from testbed.node.network import NODE_ADDRESS, PODS
from testbed.node.system import STATE
from testbed.ports import LOOPBACK
from testbed.processes import Child

_READY_TIMEOUT = 120.0
_DNS = """\
.:53 {{
  bind {address}
  errors
  kubernetes cluster.local {{
    kubeconfig {kubeconfig} testbed
    pods insecure
    ttl 1
  }}
}}
"""


class NodeServices:
    """All of them, as processes of the control plane's supervisor.

    Args:
        control_plane: that they belong to.
        builder: where the programs come from.
        folder: for pods and their volumes; on a disk.
    """

    def __init__(self, control_plane: ControlPlane, builder: Builder, folder: Path) -> None:
        self.folder = folder
        self.pod_logs = folder / "pod-logs"
        self._control_plane = control_plane
        self._programs = builder.ensure("kubelet", "kube-proxy", "kube-scheduler", "coredns")
        self._children: list[Child] = []

    def start(self) -> None:
        """Start them and wait until the node is ready."""
        self._start_dns()
        kubelet = self._start_kubelet()
        self._start(
            "kube-scheduler",
            *self._kubeconfig(SCHEDULER),
            "--leader-elect=false",
            f"--bind-address={LOOPBACK}",
        )
        self._start("kube-proxy", *self._kubeconfig(PROXY), *self._proxy_flags())
        self._control_plane.supervisor.wait_ready(
            kubelet, self._ready, _READY_TIMEOUT, ignoring=(CommandError,)
        )

    def stop(self) -> None:
        """End them all; containers continue."""
        for child in reversed(self._children):
            self._control_plane.supervisor.stop(child)
        self._children.clear()

    def _ready(self) -> bool:
        node = self._control_plane.get("nodes", REAL_NODE) or {}
        conditions = node.get("status", {}).get("conditions", [])
        return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)

    def _start(self, name: str, *flags: str) -> Child:
        child = self._control_plane.supervisor.start(name, [self._programs[name], *flags])
        self._children.append(child)
        return child

    def _kubeconfig(self, user: str) -> list[str]:
        return [f"--kubeconfig={self._control_plane.kubeconfig(user)}"]

    def _start_dns(self) -> None:
        (STATE / "resolv.conf").write_text(f"nameserver {NODE_ADDRESS}\n")
        text = _DNS.format(address=NODE_ADDRESS, kubeconfig=self._control_plane.kubeconfig())
        (STATE / "Corefile").write_text(text)
        self._start("coredns", "-conf", str(STATE / "Corefile"))

    def _start_kubelet(self) -> Child:
        config = STATE / "kubelet.yaml"
        config.write_text(yaml.safe_dump(self._kubelet_config()))
        return self._start(
            "kubelet",
            *self._kubeconfig(KUBELET),
            f"--config={config}",
            f"--hostname-override={REAL_NODE}",
            f"--node-ip={NODE_ADDRESS}",
            f"--root-dir={self.folder / 'kubelet'}",
            f"--cert-dir={STATE / 'kubelet-certificates'}",
            "--v=2",
        )

    def _kubelet_config(self) -> dict[str, Any]:
        issued = self._control_plane.ca.issue_server(REAL_NODE, (NODE_ADDRESS, REAL_NODE))
        certificate, key = issued.write(STATE, "kubelet")
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": NODE_ADDRESS,
            "healthzBindAddress": LOOPBACK,
            "tlsCertFile": str(certificate),
            "tlsPrivateKeyFile": str(key),
            # no one but the API server can reach it
            "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"},
            "containerRuntimeEndpoint": f"unix://{SOCKET}",
            "cgroupDriver": "cgroupfs",
            "failCgroupV1": False,
            "failSwapOn": False,
            "clusterDNS": [NODE_ADDRESS],
            "clusterDomain": "cluster.local",
            "resolvConf": str(STATE / "resolv.conf"),
            # lower values need rights that root has not everywhere
            "oomScoreAdj": 0,
            "maxOpenFiles": 20000,
            "podLogsDir": str(self.pod_logs),
            "volumePluginDir": str(STATE / "volume-plugins"),
            "enforceNodeAllocatable": ["pods"],
            "evictionHard": {
                "memory.available": "100Mi",
                "nodefs.available": "1%",
                "imagefs.available": "1%",
            },
            "imageGCHighThresholdPercent": 100,
            "imageGCLowThresholdPercent": 99,
            "syncFrequency": "10s",
            "nodeStatusUpdateFrequency": "5s",
        }

    @staticmethod
    def _proxy_flags() -> list[str]:
        return [
            f"--hostname-override={REAL_NODE}",
            "--proxy-mode=nftables",
            f"--cluster-cidr={PODS}",
            f"--bind-address={LOOPBACK}",
            # the limits of connection tracking are the machine's, not the namespace's
            "--conntrack-max-per-core=0",
            "--conntrack-tcp-timeout-established=0",
            "--conntrack-tcp-timeout-close-wait=0",
        ]
