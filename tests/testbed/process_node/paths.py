"""Paths of a container on the host, where no mount namespace can make them true.

Every mount path is replaced by the folder behind it, in command, environment and in those files of
ConfigMaps that Spark reads. Paths that a program builds by itself are not seen.
"""

import re
from collections.abc import Mapping

_REWRITTEN_FILES = (".properties", ".conf")


class PathMap:
    """Replaces paths of the container by paths of the host, longest first.

    Args:
        folders: path in the container and on the host.
    """

    def __init__(self, folders: Mapping[str, str]) -> None:
        self._folders = {path.rstrip("/"): host for path, host in folders.items()}
        longest_first = sorted(self._folders, key=len, reverse=True)
        # only whole names: /opt/spark is not a part of /opt/spark-kafka, nor of /my/opt/spark
        choice = "|".join(re.escape(path) for path in longest_first)
        self._pattern = re.compile(rf"(?<![\w.-])(?:{choice})(?![\w.-])") if choice else None

    def rewrite(self, text: str) -> str:
        """The text with all mapped paths replaced."""
        if self._pattern is None:
            return text
        return self._pattern.sub(lambda found: self._folders[found[0]], text)

    def rewrite_file(self, name: str, data: bytes) -> bytes:
        """The content of a ConfigMap's file; only Spark's configuration is changed."""
        if not name.endswith(_REWRITTEN_FILES):
            return data
        return self.rewrite(data.decode()).encode()
