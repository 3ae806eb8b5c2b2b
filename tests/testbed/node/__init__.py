"""A real node: kubelet, containerd, kube-proxy, scheduler and DNS in a closed network namespace.

Root on Linux.

What the process node cannot show is real here: images, limits, probes, Services, DNS,
`securityContext`. There is no link from the namespace to any other network, so nothing leaves and
no port clashes:

* `testbed.node.network`: the namespace, which this program enters with all that it starts;
* `testbed.node.system`: what a node changes on the machine, and how that is taken back;
* `testbed.node.oci`: the images, by the checkout's Dockerfile, with buildah in place of an engine;
* `testbed.node.containers`: containerd;
* `testbed.node.kubernetes`: kubelet, scheduler, kube-proxy, CoreDNS;
* `testbed.node.cluster`: all of it behind the interface of every cluster.
"""
