"""The Kubernetes operator: kopf handlers → controller (decides) → runtime (does).

And the command line.
"""
