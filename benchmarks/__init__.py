"""Performance claims, each measured beside its rival in the same run."""
