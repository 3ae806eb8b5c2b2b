"""Pieces of end-to-end stories.

Load with a ledger, a source as its user sees it, proof in the sink's files.
"""
