"""What commands show of a source.

Its readers, splits, lag and conditions, from a cluster or from a folder.
"""
