"""Images by the checkout's Dockerfile, without an engine: buildah with chroot isolation.

No image is pulled: what the Dockerfile calls its Python image is made of Debian's packages
(mmdebstrap) and given by the argument that the Dockerfile has for it. So the recipe is the very
same one as with an engine; only the base differs. Archives are kept in the cache by the content of
everything that goes into them, and buildah keeps its layers there too, so that a change of code
costs the last few layers.
"""

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

from testbed.builds import Builder
from testbed.cache import Cache, content_key
from testbed.commands import nice, run
from testbed.errors import BuildError, CommandError
from testbed.images import OPERATOR, spark_image_name
from testbed.progress import Progress
from testbed.versions import CHECKOUT

PAUSE = "balanced-source/pause:testbed"
_BASE = "balanced-source/python:bookworm"
_SUITE = "bookworm"
_BASE_PACKAGES = ("ca-certificates", "python3", "python3-venv")
_BASE_OPTIONS = (
    "--variant=minbase",
    "--mode=root",
    *(f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in ("doc", "man", "locale")),
)
_CONTEXT = (
    "operator/src",
    "spark_app",
    ".ci/locks",
    "pyproject.toml",
    "README.md",
    "LICENSE",
    ".dockerignore",
)
_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
_TIMEOUT = 3600.0


class ImageBuilder:
    """Archives of images, as `ctr images import` takes them.

    Args:
        cache: where archives and layers are.
        builder: where the pause program comes from.
        progress: told about each build.
    """

    def __init__(self, cache: Cache, builder: Builder, progress: Progress) -> None:
        self._cache = cache
        self._builder = builder
        self._progress = progress
        self._store = cache.root / "buildah"

    def operator(self) -> Path:
        """The archive of the operator's image."""
        return self._archive("operator", OPERATOR, lambda: self._build("operator", OPERATOR))

    def spark(self, version: str) -> Path:
        """The archive of the image with a version of Spark."""
        name = spark_image_name(version)
        setting = f"SPARK_VERSION={version}"
        return self._archive(f"spark-{version}", name, lambda: self._build("spark", name, setting))

    def pause(self) -> Path:
        """The archive of the image that holds a pod's namespaces."""
        program = self._builder.ensure("pause")["pause"]
        return self._archive(
            "pause", PAUSE, lambda: self._pack_pause(program), content_key(str(program))
        )

    def _archive(self, what: str, name: str, build: Callable[[], None], key: str = "") -> Path:
        def make(target: Path) -> None:
            with self._progress.step(f"build image {name}"):
                build()
                self._buildah(
                    "push",
                    "--disable-compression",
                    _local(name),
                    f"docker-archive:{target / 'image.tar'}:{name}",
                )

        folder = self._cache.artefact(f"image-{what}", key or _context_key(), make)
        self._drop_older(what, folder)
        return folder / "image.tar"

    def _drop_older(self, what: str, newest: Path) -> None:
        """An archive is large, and no one needs that of yesterday's code."""
        for folder in self._cache.root.glob(f"image-{what}-*"):
            if folder != newest and folder.stat().st_mtime < newest.stat().st_mtime:
                shutil.rmtree(folder, ignore_errors=True)

    def _build(self, target: str, name: str, *settings: str) -> None:
        self._ensure_base()
        pip = self._store / "pip.conf"
        pip.write_text("[global]\ncert = /run/secrets/ca.crt\n")
        arguments = [
            f"--build-arg={setting}"
            for setting in (f"PYTHON_IMAGE={_local(_BASE)}", "NATIVE=without", *settings)
        ]
        self._buildah(
            *(
                "build",
                "--isolation",
                "chroot",
                "--pull-never",
                "--layers",
                "--disable-compression",
            ),
            *(f"--secret=id=pip,src={pip}", f"--secret=id=ca,src={_CERTIFICATES}"),
            *arguments,
            *(
                "--target",
                target,
                "--tag",
                _local(name),
                "--file",
                str(CHECKOUT / "Dockerfile"),
                str(CHECKOUT),
            ),
        )

    def _ensure_base(self) -> None:
        def make(target: Path) -> None:
            with self._progress.step("make the base image of Debian's packages"):
                packages = f"--include={','.join(_BASE_PACKAGES)}"
                run(
                    nice(["mmdebstrap", *_BASE_OPTIONS, packages, _SUITE, target / "root.tar"]),
                    timeout=_TIMEOUT,
                )

        root = (
            self._cache.artefact(
                "image-base", content_key(_SUITE, *_BASE_PACKAGES, *_BASE_OPTIONS), make
            )
            / "root.tar"
        )
        if self._has(_BASE):
            return
        path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        self._pack(_BASE, [root, "/"], ["--env", path])

    def _pack_pause(self, program: Path) -> None:
        self._pack(PAUSE, [program, "/pause"], ["--entrypoint", '["/pause"]'])

    def _pack(self, name: str, content: Iterable[Path | str], settings: list[str]) -> None:
        """An image of one layer."""
        container = self._buildah("from", "scratch").strip()
        try:
            self._buildah("add", "--quiet", container, *map(str, content))
            self._buildah("config", *settings, container)
            self._buildah("commit", "--quiet", "--disable-compression", container, _local(name))
        finally:
            self._buildah("rm", container)

    def _has(self, name: str) -> bool:
        try:
            self._buildah("inspect", "--type", "image", _local(name))
        except CommandError:
            return False
        return True

    def _buildah(self, command: str, *arguments: str) -> str:
        self._store.mkdir(parents=True, exist_ok=True)
        policy = self._store / "policy.json"
        policy.write_text('{"default": [{"type": "insecureAcceptAnything"}]}')
        trust = (
            ["--signature-policy", str(policy)]
            if command in ("build", "commit", "from", "push")
            else []
        )
        store = ["--root", str(self._store / "root"), "--runroot", str(self._store / "run")]
        words: list[str | Path] = [
            "buildah",
            *store,
            "--storage-driver",
            "overlay",
            command,
            *trust,
            *arguments,
        ]
        try:
            return run(nice(words), timeout=_TIMEOUT)
        except CommandError as error:
            if command == "inspect":
                raise
            raise BuildError(f"buildah {command}: {error.stderr[-3000:]}") from error


def _local(name: str) -> str:
    """The name in buildah's store, where nothing may look like an image of a registry."""
    return f"localhost/{name}"


def _context_key() -> str:
    """Over everything that the Dockerfile sees."""
    files = [CHECKOUT / "Dockerfile"]
    for name in _CONTEXT:
        path = CHECKOUT / name
        files += (
            [path]
            if path.is_file()
            else [p for p in path.rglob("*") if p.is_file() and "__pycache__" not in p.parts]
        )
    named: list[str | Path] = []
    for file in sorted(files):
        named += [str(file.relative_to(CHECKOUT)), file]
    return content_key(*named)
