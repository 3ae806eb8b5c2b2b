"""The transform of laptop.yaml."""

from pyspark.sql import DataFrame


def as_text(rows: DataFrame) -> DataFrame:
    """Return keys and values as text, with the place of each record."""
    return rows.selectExpr(
        "CAST(key AS STRING)", "CAST(value AS STRING)", "topic", "partition", "offset"
    )
