"""The status page: a read-only picture of the sources that a process serves. Off by default."""
