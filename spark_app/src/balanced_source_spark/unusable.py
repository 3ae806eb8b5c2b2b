"""A data source for a Spark on which ours cannot run: it says why when it is used."""

from typing import Any

from pyspark.sql.datasource import DataSource


def unusable(reason: str) -> type[DataSource]:
    """Return a data source all of whose uses fail with `reason`."""

    class Unusable(DataSource):
        @classmethod
        def name(cls) -> str:
            return "balanced"

        def schema(self) -> Any:
            raise ImportError(reason)

    return Unusable
