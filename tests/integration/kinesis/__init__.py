"""Streams of a real Kinesis server."""
