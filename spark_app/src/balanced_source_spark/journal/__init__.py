"""Sources whose ends are not known when a micro-batch is planned.

Their planner, and what runs in their tasks.
"""
