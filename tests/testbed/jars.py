"""Java libraries by Maven, each checked against a committed SHA-256.

A pom names the wanted artefacts and their versions; `sha256.txt` beside it lists every file that
the resolution must give, no more and no less.
"""

import hashlib
from pathlib import Path

from testbed.cache import Cache, content_key
from testbed.commands import find_program, nice, run
from testbed.errors import BuildError, CommandError
from testbed.progress import Progress
from testbed.versions import TESTBED

_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
SETS = ("kafka", "spark-kafka", "flink", "delta", "s3")
"""`kafka`: a broker and its tools.

`spark-kafka`: Spark's own Kafka source, for comparisons, and its sink. `delta`, `s3`: further
sinks. `flink`: for comparisons. `s3` is large (690 MB): fetched by the test that needs it.
"""


def ensure_jars(name: str, cache: Cache | None = None, progress: Progress | None = None) -> Path:
    """The folder with the jars of one set, fetched if they are not in the cache.

    Args:
        name: from `SETS`.
        cache: where artefacts are kept.
        progress: told about a fetch.

    Raises:
        BuildError: Maven failed, or a jar is not the pinned one.
        MissingPrerequisiteError: there is no Maven.
    """
    source = TESTBED / "jars" / name
    if not source.is_dir():
        raise BuildError(f"no set of jars {name!r}; known: {', '.join(SETS)}")

    def fetch(target: Path) -> None:
        with (progress or Progress()).step(f"fetch jars of {name}"):
            _copy_dependencies(source / "pom.xml", target)
            verify(target, read_pins(source / "sha256.txt"))

    key = content_key(source / "pom.xml", source / "sha256.txt")
    return (cache or Cache()).artefact(f"jars-{name}", key, fetch)


def read_pins(path: Path) -> dict[str, str]:
    """File name and SHA-256 from a list in the format of `sha256sum`."""
    lines = (line.split() for line in path.read_text().splitlines() if line.strip())
    return {name: digest for digest, name in lines}


def verify(folder: Path, pins: dict[str, str]) -> None:
    """Compare a folder of jars with the pinned ones.

    Raises:
        BuildError: a jar is missing, unknown or has another content.
    """
    found = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.glob("*.jar")
    }
    wrong = {
        "missing": sorted(pins.keys() - found.keys()),
        "not pinned": sorted(found.keys() - pins.keys()),
        "changed": sorted(name for name in pins.keys() & found.keys() if pins[name] != found[name]),
    }
    if any(wrong.values()):
        told = "; ".join(f"{what}: {', '.join(names)}" for what, names in wrong.items() if names)
        raise BuildError(f"jars are not the pinned ones: {told}")


def _copy_dependencies(pom: Path, target: Path) -> None:
    maven = find_program(
        "mvn", "Install Apache Maven 3.8 or newer (Debian and Ubuntu: `apt-get install maven`)."
    )
    settings = ["-DincludeScope=runtime", f"-DoutputDirectory={target}"]
    try:
        run(nice([maven, "-B", "-q", "-f", pom, _COPY, *settings]))
    except CommandError as error:
        raise BuildError(
            f"Maven could not fetch the jars of {pom.parent.name}: {error.stderr[-3000:]}"
        ) from error
