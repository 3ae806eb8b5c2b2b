"""Values of the chart for tests."""
