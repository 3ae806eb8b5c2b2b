"""Which other hosts of a source have splits in their Spark checkpoints.

A source may be deleted and applied again with fewer hosts. Then nothing but the checkpoints tells
that there were more, and what they hold would be read once more from its start.
"""

import json
from collections.abc import Callable
from typing import Any, Final

import structlog
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from balanced_source.documents import stream_offset
from balanced_source.documents.storage import FIRST_HOST, in_host_order
from balanced_source.errors import BalancedSourceError
from balanced_source_spark.host_outputs import HOSTS, checkpoint_of

_ABSENT: Final = "java.io.FileNotFoundException"

log = structlog.get_logger(__name__)


def former_hosts(spark: SparkSession, location: str, *, host: str) -> tuple[str, ...]:
    """Return the other hosts whose Spark checkpoints hold splits, in their order.

    Empty if the checkpoints cannot be listed; the log says why.

    Args:
        spark: session whose file systems and credentials are used.
        location: Spark checkpoint of the source.
        host: name of the host that asks.
    """
    folders = _Folders(spark)
    try:
        # Spark's checkpoint of the first host lies in `location` itself.
        names = {FIRST_HOST, *filter(str.isdecimal, folders.names(f"{location}/{HOSTS}"))} - {host}
        found = {n: n for n in names if _holds(folders, checkpoint_of(location, n))}
    except Py4JJavaError as error:
        # Spark itself tells more clearly what is wrong with a location, when the query starts.
        log.warning("cannot look for checkpoints of other hosts", error=str(error.java_exception))
        return ()
    return tuple(in_host_order(found))


def _holds(folders: "_Folders", checkpoint: str) -> bool:
    """Whether the newest offset of a Spark checkpoint has splits, or cannot be understood."""
    numbers = [int(name) for name in folders.names(f"{checkpoint}/offsets") if name.isdecimal()]
    return bool(numbers) and _has_splits(folders.text(f"{checkpoint}/offsets/{max(numbers)}"))


def _has_splits(entry: str) -> bool:
    """Whether an entry of Spark's offset log has splits.

    Its lines are a version, metadata, and an offset per source of the query.
    """
    try:
        offset = stream_offset.from_json(json.loads(entry.splitlines()[2]))
    # Better a host that starts for nothing than records that come twice.
    except (IndexError, ValueError, TypeError, BalancedSourceError):
        return True
    return bool(offset.positions or offset.retained)


class _Folders:
    """Reads folders and small files in Hadoop's file systems."""

    def __init__(self, spark: SparkSession) -> None:
        context = spark.sparkContext
        self._jvm: Any = context._jvm  # noqa: SLF001
        self._settings: Any = context._jsc.hadoopConfiguration()  # noqa: SLF001

    def names(self, folder: str) -> list[str]:
        """Return the names in a folder; empty if there is no such folder."""
        return [status.getPath().getName() for status in self._existing(folder, "listStatus", [])]

    def text(self, file: str) -> str:
        """Return the text of a file; empty if there is no such file."""
        stream = self._existing(file, "open", None)
        if stream is None:
            return ""
        try:
            found: bytes = self._jvm.org.apache.hadoop.io.IOUtils.readFullyToByteArray(stream)
        finally:
            stream.close()
        return found.decode()

    def _existing(self, location: str, method: str, absent: Any) -> Any:
        path = self._jvm.org.apache.hadoop.fs.Path(location)
        call: Callable[[Any], Any] = getattr(path.getFileSystem(self._settings), method)
        try:
            return call(path)
        except Py4JJavaError as error:
            if error.java_exception.getClass().getName() == _ABSENT:
                return absent
            raise
