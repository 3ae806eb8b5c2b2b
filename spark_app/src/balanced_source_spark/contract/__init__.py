"""What the Spark side asks of a connector.

Its options, schema and task reader, and what planning asks of it.
"""
