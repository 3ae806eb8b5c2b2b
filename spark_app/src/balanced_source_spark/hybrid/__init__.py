"""The hybrid source on the Spark side: options, planner hooks and tasks of its parts, under their names."""
