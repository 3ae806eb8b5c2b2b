"""What the Spark side asks of a connector: its options, schema and task reader, and what planning asks of it."""
