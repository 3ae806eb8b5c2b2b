"""A simulation of autoscalers: `python -m benchmarks.autoscaling`."""
