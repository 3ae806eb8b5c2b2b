"""A node that runs every container as a local process: Spark on Kubernetes without containers.

It registers one Node, binds every unbound pod to itself and does what a kubelet does as far as
Spark and operators need it: environment and volumes from ConfigMaps, Secrets, fields and tokens
(refreshed while the pod runs), init containers, restarts with back-off, exit codes, logs, deletion
with a grace period, an address per pod. An image is a mapping (`testbed.process_node.images`):
which folders of the host appear where, with which environment.

Not covered: resource limits and out-of-memory kills, probes, exec, Services and DNS, network
policies, real images, sidecar init containers, several nodes, isolation. A pod's `securityContext`
and `resources` are accepted and ignored: every process runs as the user of the node. A server that
listens on all addresses takes its port from all pods. For those there must be a real kubelet.

Paths: where the machine allows mount namespaces, each container gets its own root, in which volumes
and images are mounted where the pod says. Elsewhere the paths are rewritten in commands,
environment and configuration files (`testbed.process_node.paths`).
"""
