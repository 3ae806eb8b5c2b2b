"""The settings of a process node, handed to its program as one JSON file."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from testbed.pki import write_private
from testbed.process_node.images import ProcessImage


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeConfig:
    """What a node needs to know.

    Attributes:
        name: of the Node object.
        server: URL of the API server.
        token: of a user who may bind pods and read their ConfigMaps and Secrets.
        ca_file: certificate that the API server's one is checked against.
        certificate: of the node's own server for logs.
        key: its key.
        port: where that server listens, on loopback.
        directory: gets the pods' folders and logs.
        path: PATH of all containers, behind the folders of their image.
        images: image name and what it stands for.
        mount_namespaces: whether containers get a root of their own; None: if the machine can.
    """

    name: str
    server: str
    token: str
    ca_file: Path
    certificate: Path
    key: Path
    port: int
    directory: Path
    path: str
    images: Mapping[str, ProcessImage]
    mount_namespaces: bool | None = None

    def write(self, path: Path) -> None:
        """Write the settings, readable by their owner only: there is a token in them."""
        document = asdict(self) | {
            "images": {name: image.to_json() for name, image in self.images.items()}
        }
        write_private(path, json.dumps(document, default=str, indent=1))

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read what `write` has written."""
        document = json.loads(path.read_text())
        document["images"] = {
            name: ProcessImage.from_json(image) for name, image in document["images"].items()
        }
        for name in ("ca_file", "certificate", "key", "directory"):
            document[name] = Path(document[name])
        return cls(**document)
