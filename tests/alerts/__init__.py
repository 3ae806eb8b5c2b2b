"""Plays the chart's alerts with promtool: `make test-alerts`."""
