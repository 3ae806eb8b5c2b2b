"""Sources whose ends are not known when a micro-batch is planned: their planner, and what runs in their tasks."""
