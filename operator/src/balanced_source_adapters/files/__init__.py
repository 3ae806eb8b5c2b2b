"""Files: the I/O that the driver and the tasks need."""
