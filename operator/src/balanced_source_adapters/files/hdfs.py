"""HDFS, by pyarrow's client over Hadoop's own native library."""

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from balanced_source.connectors.files import File
from balanced_source.errors import RefusedDiscoveryError, TransientDiscoveryError
from balanced_source_adapters.files.file_store import (
    EVERYTHING,
    FileStore,
    WantedFiles,
    not_installed,
)

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.fs


class HdfsStore(FileStore):
    """Files of one name node. A path is absolute.

    Args:
        filesystem: the client.
        server: ``host:port``, for messages.
    """

    def __init__(self, filesystem: "pyarrow.fs.FileSystem", server: str) -> None:
        self._filesystem, self._server = filesystem, server

    def walk(
        self, base: str, *, after: str = "", wanted: WantedFiles = EVERYTHING
    ) -> Iterator[File]:
        from pyarrow.fs import FileType

        try:
            info = self._filesystem.get_file_info(base)
            if info.type is FileType.File:
                yield _file(base, info)
            elif info.type is FileType.Directory:
                yield from self._below(base, wanted.enters)
        except OSError as error:
            raise TransientDiscoveryError(
                f"cannot list hdfs://{self._server}{base}: {_line(error)}. Check the name node, and"
                " the rights of the driver's user",
                scope="files",
            ) from error

    def _below(self, base: str, enters: Callable[[str], bool]) -> Iterator[File]:
        """Yield files folder by folder, so that memory follows the largest folder."""
        from pyarrow.fs import FileSelector, FileType

        folders = [base]
        while folders:
            folder = folders.pop()
            for info in self._filesystem.get_file_info(FileSelector(folder, allow_not_found=True)):
                # Some releases return a URL as the path.
                path = f"{folder.rstrip('/')}/{info.base_name}"
                if info.type is FileType.Directory:
                    if enters(path):
                        folders.append(path)
                elif info.type is FileType.File:
                    yield _file(path, info)

    def exists(self, base: str) -> bool:
        from pyarrow.fs import FileType

        return self._filesystem.get_file_info(base).type is not FileType.NotFound

    def stat(self, path: str) -> File | None:
        from pyarrow.fs import FileType

        info = self._filesystem.get_file_info(path)
        return _file(path, info) if info.type is FileType.File else None

    def open(self, path: str) -> "pa.NativeFile":
        return self._filesystem.open_input_file(path)


def hdfs_store(server: str) -> HdfsStore:
    """Return the files of a name node.

    Args:
        server: ``host:port``, or the name of a name service; empty for that of Hadoop's own
            configuration.

    Raises:
        DiscoveryError: a library is missing, or the name node does not answer.
    """
    try:
        return HdfsStore(_filesystem(server), server)
    except ModuleNotFoundError as error:
        raise not_installed("files of HDFS are read", "pyarrow", error) from error
    except ImportError as error:
        raise _no_library(str(error)) from error
    except OSError as error:
        if "libhdfs" in str(error) or "libjvm" in str(error):
            raise _no_library(_line(error)) from error
        raise TransientDiscoveryError(
            f"cannot connect to hdfs://{server}: {_line(error)}. Check the name node, and Hadoop's"
            " configuration in CLASSPATH",
            scope="files",
        ) from error


@lru_cache(maxsize=4)
def _filesystem(server: str) -> Any:
    from pyarrow.fs import HadoopFileSystem

    host, _, port = server.partition(":")
    # Port 0 leaves the port to Hadoop's configuration.
    return HadoopFileSystem(host or "default", int(port or 0))


def _no_library(why: str) -> RefusedDiscoveryError:
    return RefusedDiscoveryError(
        f"HDFS needs Java and Hadoop's native client libhdfs, which cannot be loaded: {why}."
        " Install both in the images of driver and executors, and set JAVA_HOME, HADOOP_HOME, and"
        " CLASSPATH to what `hadoop classpath --glob` prints",
        scope="files",
    )


def _file(path: str, info: Any) -> File:
    return File(info.mtime_ns or 0, path, info.size)


def _line(error: Exception) -> str:
    return str(error).partition("\n")[0] or type(error).__name__
