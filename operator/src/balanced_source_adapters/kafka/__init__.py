"""Kafka's I/O that operator and driver both need: the only modules here that know its client."""
