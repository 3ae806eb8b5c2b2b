"""The full engine: API server, Kubeflow's operator, process node, real Spark; one stack with several sources."""
