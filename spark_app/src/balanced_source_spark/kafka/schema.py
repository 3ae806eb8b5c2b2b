"""The rows: Spark's own Kafka schema, and the cluster."""

from collections.abc import Mapping, Sequence
from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

_HEADER: Final = StructType([StructField("key", StringType()), StructField("value", BinaryType())])

_TYPES: Final[Mapping[str, DataType]] = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
    "headers": ArrayType(_HEADER),
    "cluster": StringType(),
}


def spark_schema(columns: Sequence[str]) -> StructType:
    """Columns of ``format("kafka")``, and `cluster`, in the given order."""
    return StructType([StructField(name, _TYPES[name]) for name in columns])
