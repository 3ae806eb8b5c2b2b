"""The Kubernetes operator: kopf handlers → controller (decides) → runtime (does); and the command line."""
