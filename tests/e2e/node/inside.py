"""Commands of the pages that begin with `kubectl exec`; only real pods can run them."""

import shlex
from collections.abc import Iterator, Mapping
from functools import reduce
from typing import Final

from e2e.node.scene import JOBS, Scene
from support.page_commands import commands
from testbed.errors import CommandError

_PAGES: Final = {
    "command-line.md": "source jobs/orders",
    "troubleshooting.md": "broker.kafka:9092",
    "start/kubernetes.md": "'topic': '",
}
"""Page → what its command prints if it works."""


def check_commands(scene: Scene) -> list[str]:
    """Run the commands in pods of the story; returns what they did not do."""
    return [complaint for page in _PAGES for complaint in _complaints(scene, page)]


def _complaints(scene: Scene, page: str) -> Iterator[str]:
    driver = scene.driver["metadata"]["name"]
    here = {
        "broker.kafka:9092": scene.cluster.kafka().bootstrap,
        "-n shop": f"-n {JOBS}",
        "$DRIVER": driver,
        "/data/orders": str(scene.sink),
    }
    found = [c.text for c in commands(page) if c.text.startswith("kubectl exec ")]
    if not found:
        yield f"{page} has no command that begins with `kubectl exec`"
    wanted = _filled(_PAGES[page], here)
    for text in found:
        filled = _filled(text, here)
        try:
            printed = scene.kubectl(*shlex.split(filled)[1:])
        except CommandError as error:
            printed = str(error)
        if wanted not in printed:
            yield f"{page}: {filled}: {printed}"


def _filled(text: str, here: Mapping[str, str]) -> str:
    return reduce(lambda done, name: done.replace(name, here[name]), here, text)
