"""Kafka readers for Spark tasks."""
