"""The API server behind a port."""
