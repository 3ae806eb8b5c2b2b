"""The Kubernetes operator: kopf handlers, the controller that decides, the runtime that does."""
