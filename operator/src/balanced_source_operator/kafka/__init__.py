"""Kafka's operator half.

Its branch of the CRD, and the way from there to a source of the library.
"""
