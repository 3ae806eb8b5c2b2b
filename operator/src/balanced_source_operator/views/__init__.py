"""What commands show of a source: its readers, splits, lag and conditions, from a cluster or from a folder."""
