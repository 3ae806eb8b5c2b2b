"""The Kubernetes operator: kopf handlers → controller (decides) → runtime (does).

The command line is here as well.
"""
