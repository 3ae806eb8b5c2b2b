"""I/O of the hybrid source: that of its parts."""
