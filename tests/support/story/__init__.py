"""Pieces of end-to-end stories: load with a ledger, the state of a source as users see it, proof in the sink's files."""
