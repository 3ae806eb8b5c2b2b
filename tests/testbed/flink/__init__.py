"""Flink on loopback, for comparisons: a session cluster and the gateway that takes SQL."""
