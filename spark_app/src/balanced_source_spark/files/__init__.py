"""Files on the Spark side: options, planner hooks, and what runs in a task."""
