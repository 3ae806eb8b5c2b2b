"""A support bundle: what someone needs who helps from afar, without secrets."""

from balanced_source_operator.bundle.collect import Item, collect

__all__ = ["Item", "collect"]
