"""Programs built from source through Go's module proxy.

Kubernetes and spark-operator refuse `go install …@version` because of the replace directives in
their go.mod. So each family has a wrapper module of its own under `go/`, with committed go.mod and
go.sum; a build may not change them (`-mod=readonly`), and therefore is the same on every machine.
"""

import json
import platform
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from testbed import keda_sources, versions
from testbed.cache import Cache, content_key
from testbed.commands import nice, run
from testbed.errors import BuildError, CommandError
from testbed.golang import environment, find_go
from testbed.progress import Progress

_SPARK_OPERATOR_MODULE = "github.com/kubeflow/spark-operator/v2"
_KEDA_MODULE = "github.com/kedacore/keda/v2"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A module that is built in a copy of itself, with its own locks, because parts are left out.

    Attributes:
        module: its path.
        trim: copies the first folder to the second, without those parts.
        script: the file with `trim`, which decides what is built.
    """

    module: str
    trim: Callable[[Path, Path], None]
    script: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A wrapper module: programs that are built from one set of locked dependencies.

    Attributes:
        name: its folder under `go/`.
        version: of the programs, for messages.
        packages: program name and the Go package that it is built from.
        tags: build tags.
        stamps: linker variables to set, such as the version that the program reports.
        cut: None if the module is built as it is.
    """

    name: str
    version: str
    packages: Mapping[str, str]
    tags: tuple[str, ...] = ()
    stamps: Mapping[str, str]
    cut: Cut | None = None

    @property
    def folder(self) -> Path:
        """Where the wrapper module is."""
        return versions.TESTBED / "go" / self.name

    @property
    def flags(self) -> list[str]:
        """Flags of `go build`."""
        linker = ["-s", "-w", *(f"-X={name}={value}" for name, value in self.stamps.items())]
        tags = ["-tags", ",".join(self.tags)] if self.tags else []
        return ["-trimpath", *tags, "-ldflags", " ".join(linker)]

    def key(self, program: str) -> str:
        """The cache key of one program: everything that decides what the build makes."""
        sources = sorted(
            path for path in self.folder.iterdir() if path.suffix in {".go", ".mod", ".sum"}
        )
        sources += [self.cut.script] if self.cut else []
        return content_key(platform.machine(), self.packages[program], *self.flags, *sources)


def _kubernetes_stamps() -> dict[str, str]:
    # kubectl and Helm misjudge a server that reports no version
    major, minor, _ = versions.KUBERNETES.split(".")
    values = {
        "gitVersion": f"v{versions.KUBERNETES}",
        "gitMajor": major,
        "gitMinor": minor,
        "gitTreeState": "clean",
        "gitCommit": "0" * 40,
        "buildDate": "2026-01-01T00:00:00Z",
    }
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    return {f"{package}.{name}": value for package in packages for name, value in values.items()}


def _helm_stamps() -> dict[str, str]:
    # without a Kubernetes version `helm template` takes the cluster for one of 1.20
    major, minor, _ = versions.KUBERNETES.split(".")
    packages = ("helm.sh/helm/v3/pkg/chartutil", "helm.sh/helm/v3/pkg/lint/rules")
    stamps = {"helm.sh/helm/v3/internal/version.version": f"v{versions.HELM}"}
    for package in packages:
        stamps |= {f"{package}.k8sVersionMajor": major, f"{package}.k8sVersionMinor": minor}
    return stamps


_KUBERNETES_PROGRAMS = (
    "kube-apiserver",
    "kube-controller-manager",
    "kubectl",
    "kubelet",
    "kube-proxy",
    "kube-scheduler",
)

FAMILIES = (
    Family(
        name="etcd",
        version=versions.ETCD,
        packages={"etcd": "go.etcd.io/etcd/server/v3"},
        stamps={},
    ),
    Family(
        name="k8s",
        version=versions.KUBERNETES,
        packages={name: f"k8s.io/kubernetes/cmd/{name}" for name in _KUBERNETES_PROGRAMS},
        tags=("selinux", "notest", "grpcnotrace"),
        stamps=_kubernetes_stamps(),
    ),
    Family(
        name="spark-operator",
        version=versions.SPARK_OPERATOR,
        packages={"spark-operator": f"{_SPARK_OPERATOR_MODULE}/cmd/operator"},
        stamps={"k8s.io/component-base/version.gitVersion": f"v{versions.SPARK_OPERATOR}"},
    ),
    Family(
        name="helm",
        version=versions.HELM,
        packages={"helm": "helm.sh/helm/v3/cmd/helm"},
        stamps=_helm_stamps(),
    ),
    Family(
        name="helm4",
        version=versions.HELM_4,
        packages={"helm4": "helm.sh/helm/v4/cmd/helm"},
        stamps={"helm.sh/helm/v4/internal/version.version": f"v{versions.HELM_4}"},
    ),
    Family(
        name="coredns",
        version=versions.COREDNS,
        packages={"coredns": "."},
        stamps={},
    ),
    Family(
        name="linearisable",
        version=versions.PORCUPINE,
        packages={"linearisable": "."},
        stamps={},
    ),
    Family(
        name="fake-gcs-server",
        version=versions.FAKE_GCS_SERVER,
        packages={"fake-gcs-server": "github.com/fsouza/fake-gcs-server"},
        stamps={},
    ),
    Family(
        name="keda",
        version=versions.KEDA,
        packages={
            "keda": "./cmd/operator",
            "keda-adapter": "./cmd/adapter",
            "keda-webhooks": "./cmd/webhooks",
        },
        stamps={f"{_KEDA_MODULE}/version.Version": versions.KEDA},
        cut=Cut(
            module=_KEDA_MODULE,
            trim=keda_sources.trim,
            script=Path(keda_sources.__file__),
        ),
    ),
    Family(
        name="pause",
        version="1",
        packages={"pause": "."},
        stamps={},
    ),
)

SPARK_OPERATOR_FILES = "spark-operator-files"
"""Not a program: the CRDs (`crds/`) and the chart (`chart/`) of the spark-operator module."""

KEDA_FILES = "keda-files"
"""Not a program: the folder `config` of KEDA's module, with its CRDs and its roles."""

_FILES: Mapping[str, tuple[str, str, Mapping[str, str]]] = {
    SPARK_OPERATOR_FILES: (
        "spark-operator",
        _SPARK_OPERATOR_MODULE,
        {"crds": "config/crd/bases", "chart": "charts/spark-operator-chart"},
    ),
    KEDA_FILES: ("keda", _KEDA_MODULE, {"config": "config"}),
}
"""Name → a program of the family, the module, and what is copied from it to where."""

DEFAULT = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kubectl",
    "spark-operator",
    SPARK_OPERATOR_FILES,
)
"""What the demo and the tests need."""

NODE = (*DEFAULT, "helm", "kubelet", "kube-proxy", "kube-scheduler", "coredns", "pause")
"""What a real node needs."""

KEDA = ("keda", "keda-adapter", "keda-webhooks", KEDA_FILES)
"""KEDA with few scalers; see `keda_sources`."""

NAMES = (*(program for family in FAMILIES for program in family.packages), *_FILES)
"""Everything that can be built."""


class Builder:
    """Builds programs into the cache, only what is asked for and only once."""

    def __init__(self, cache: Cache | None = None, progress: Progress | None = None) -> None:
        self._cache = cache or Cache()
        self._progress = progress or Progress()

    def ensure(self, *names: str) -> dict[str, Path]:
        """Build what is missing.

        Args:
            names: from `NAMES`.

        Returns:
            Name and path: a program, or a folder of files.

        Raises:
            BuildError: a build failed, or a name is unknown.
        """
        unknown = set(names) - set(NAMES)
        if unknown:
            raise BuildError(f"cannot build {sorted(unknown)}; known: {', '.join(NAMES)}")
        return {name: self._ensure_one(name) for name in dict.fromkeys(names)}

    def missing(self, names: Iterable[str]) -> list[str]:
        """The names that are not in the cache yet."""
        return [name for name in names if self._cache.find(name, _key(name)) is None]

    def _ensure_one(self, name: str) -> Path:
        family = _family_of(name)
        make = self._copier(name) if name in _FILES else self._compiler(family, name)

        def build(target: Path) -> None:
            with self._progress.step(f"build {name} {family.version}"):
                make(target)

        folder = self._cache.artefact(name, _key(name), build)
        return folder if name in _FILES else folder / name

    def _compiler(self, family: Family, program: str) -> Callable[[Path], None]:
        def compile_program(target: Path) -> None:
            output = ["-o", str(target / program), family.packages[program]]
            with self._sources(family) as folder:
                self._go(family, folder, "build", *family.flags, *output)

        return compile_program

    @contextmanager
    def _sources(self, family: Family) -> Iterator[Path]:
        """The folder to build in."""
        if family.cut is None:
            yield family.folder
            return
        with tempfile.TemporaryDirectory(prefix=f"{family.name}-") as name:
            copy = Path(name) / "module"
            family.cut.trim(self._module(family, family.cut.module), copy)
            yield copy

    def _copier(self, name: str) -> Callable[[Path], None]:
        def copy_files(target: Path) -> None:
            _, path, folders = _FILES[name]
            module = self._module(_family_of(name), path)
            for copied, folder in folders.items():
                shutil.copytree(module / folder, target / copied)

        return copy_files

    def _module(self, family: Family, path: str) -> Path:
        """The folder of a module, checked against the family's go.sum."""
        described = self._go(family, family.folder, "mod", "download", "-json", path)
        return Path(json.loads(described)["Dir"])

    def _go(self, family: Family, folder: Path, *arguments: str) -> str:
        try:
            return run(
                nice([find_go(self._cache), *arguments]),
                cwd=folder,
                env=environment(self._cache),
            )
        except CommandError as error:
            raise BuildError(
                f"go {arguments[0]} in {family.name}: {error.stderr[-3000:]}"
            ) from error


def _family_of(name: str) -> Family:
    program = _FILES[name][0] if name in _FILES else name
    return next(family for family in FAMILIES if program in family.packages)


def _key(name: str) -> str:
    return _family_of(name).key(_FILES[name][0] if name in _FILES else name)
