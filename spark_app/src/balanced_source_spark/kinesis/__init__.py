"""Kinesis on Spark: options, columns and readers."""
