"""The hybrid source on the Spark side.

Options, planner hooks and tasks of its parts, under their names.
"""
