"""Logs behind an HTTP API, as a connector of Balanced Source."""
