"""Kafka's operator half: its branch of the CRD, and the way from there to a source of the library."""
