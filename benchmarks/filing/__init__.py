"""What `make bench-files` measures, and how."""
