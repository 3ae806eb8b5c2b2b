"""Refuses addresses that an author of a source must not have the operator's pod ask."""

from balanced_source_adapters.addresses import check_endpoint

__all__ = ["check_endpoint"]
