"""``balanced-source run``: the whole manifest on one machine, without Kubernetes."""
