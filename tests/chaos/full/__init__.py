"""The full engine: API server, Kubeflow's operator, process node, real Spark.

One stack with several sources.
"""
