"""Adapters that operator and driver both need: the Kafka client, documents in a folder.

Client libraries are imported here and in the two entry packages' own adapters, nowhere else.
"""
