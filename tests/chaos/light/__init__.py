"""The light engine: plays Spark around the real planner and the real task readers."""
