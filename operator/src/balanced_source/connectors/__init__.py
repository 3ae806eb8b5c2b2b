"""Sources: what to list, where to start.

Pure; clients are behind the calls that the runtime executes.
"""
