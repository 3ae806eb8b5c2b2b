"""The options of the hybrid source, in the order of the reference."""

from typing import Final

from balanced_source_spark.contract.option_table import Option

_GROUP: Final = "Hybrid"

OPTIONS: Final = (
    Option(
        name="parts",
        group=_GROUP,
        meaning=(
            "Parts that are read in turn, as a JSON array of objects: `connector`, the options of"
            " that connector, and optionally `startAfter`, which says what the part before measures"
            ' so that this one starts behind it: `{"time": "column"}`, or `{"offsets": {"topic":'
            ' "column", "partition": "column", "offset": "column"}}`. `offsets` may have'
            " `topicIds`, an object of topics and their ids."
        ),
    ),
    Option(
        name="columns",
        group=_GROUP,
        meaning="Names of the columns to read, separated by commas, for parts without this option.",
    ),
)
