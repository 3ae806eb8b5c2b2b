"""The reference of ``spec.source.kafka``, from the models.

Every field with its meaning, default and an example.
"""

from support.kafka_reference.fields import Entry, entries
from support.kafka_reference.page import page

__all__ = ["Entry", "entries", "page"]
