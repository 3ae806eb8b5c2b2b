"""Kinesis: its client, the reader of shards, and the connector."""
