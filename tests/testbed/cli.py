"""The command line: `python -m testbed build | up | status | venv | down`."""

import signal
import tempfile
import threading
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from testbed import builds, golang
from testbed.azure import ensure_azurite
from testbed.cache import Cache
from testbed.class_data import spark_driver_options
from testbed.cluster import ProcessCluster, clean, read_manifest, stop_recorded
from testbed.errors import TestbedError
from testbed.jars import SETS, ensure_jars
from testbed.kinesis import ensure_kinesis
from testbed.processes import Supervisor
from testbed.progress import Progress
from testbed.venvs import ensure_venv
from testbed.versions import SPARK

app = typer.Typer(no_args_is_help=True, add_completion=False, help=__doc__)
_console = Console(highlight=False, soft_wrap=True)
_Folder = Annotated[
    Path, typer.Option("--dir", help="The testbed's folder, as `up` was given or has told it.")
]


def _told(command: Callable[..., None]) -> Callable[..., None]:
    """Turn an error of the testbed into a message and exit code 1, without a stack trace."""

    @wraps(command)
    def guarded(*arguments: Any, **options: Any) -> None:
        try:
            command(*arguments, **options)
        except TestbedError as error:
            Console(stderr=True, highlight=False, soft_wrap=True).print(
                str(error), style="red", markup=False
            )
            raise typer.Exit(1) from error

    return guarded


@app.command()
@_told
def build(
    names: Annotated[
        list[str] | None, typer.Argument(help="Programs; those of demo and tests if none.")
    ] = None,
    *,
    everything: Annotated[bool, typer.Option("--all", help="Whatever can be built.")] = False,
    drop_build_cache: Annotated[
        bool, typer.Option(help="Delete modules and compiled packages after.")
    ] = False,
) -> None:
    """Build programs, fetch jars and install environments, as far as the cache lacks them."""
    cache, progress = Cache(), Progress()
    wanted = builds.NAMES if everything else tuple(names or builds.DEFAULT)
    for name, path in builds.Builder(cache, progress).ensure(*wanted).items():
        _console.print(f"{name}: {path}", markup=False)
    if not names:
        for jars in SETS if everything else SETS[:1]:
            ensure_jars(jars, cache, progress)
        for version in SPARK:
            ensure_venv(version, cache, progress)
        ensure_kinesis(cache, progress)
        ensure_azurite(cache, progress)
    if drop_build_cache:
        golang.drop_build_cache(cache)


@app.command()
@_told
def up(
    *,
    directory: Annotated[
        Path | None, typer.Option("--dir", help="Its folder; a temporary one if not given.")
    ] = None,
    kafka: Annotated[int, typer.Option(min=0, help="How many Kafka clusters.")] = 1,
    crds: Annotated[
        list[Path] | None, typer.Option(help="Further custom resources, files or folders.")
    ] = None,
    spark: Annotated[str, typer.Option(help="The version of PySpark that is used.")] = SPARK[0],
    detach: Annotated[bool, typer.Option(help="Leave it running; end it by `down`.")] = False,
) -> None:
    """Start control plane, process node, spark-operator and Kafka clusters."""
    folder = directory or Path(tempfile.mkdtemp(prefix="balanced-source-testbed-"))
    names = ["main", *(f"kafka{number}" for number in range(2, kafka + 1))][:kafka]
    cluster = ProcessCluster(
        folder,
        kafka=names,
        crds=crds or (),
        spark_versions=(spark, *(version for version in SPARK if version != spark)),
        detach=detach,
        progress=Progress(),
    )
    if detach:
        _start_detached(cluster)
        return
    # as by Ctrl-C: an exception, so that everything that was started is ended
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with cluster:
            _describe(cluster.run_dir)
            _console.print("Ctrl-C ends it.")
            threading.Event().wait()
    except KeyboardInterrupt:
        _console.print("ended")


@app.command()
@_told
def venv(spark: Annotated[str, typer.Argument(help="A version of PySpark.")]) -> None:
    """Print the folder of an environment with a version of PySpark, made if the cache lacks it."""
    _console.print(ensure_venv(spark, progress=Progress(Console(stderr=True))), markup=False)


@app.command("spark-options")
@_told
def spark_options(
    spark: Annotated[str, typer.Argument(help="A version of PySpark.")] = SPARK[0],
) -> None:
    """Print JVM options with which local drivers of a version of PySpark start in half the time."""
    progress = Progress(Console(stderr=True))
    _console.print(
        " ".join(spark_driver_options(ensure_venv(spark, progress=progress), progress=progress))
    )


@app.command()
@_told
def status(directory: _Folder) -> None:
    """Tell what runs, and how to reach it."""
    _describe(directory)
    for child in Supervisor(directory).adopt():
        _console.print(f"{child.name}: process {child.pid}, log {child.log}", markup=False)


@app.command()
@_told
def down(
    directory: _Folder,
    *,
    keep_logs: Annotated[bool, typer.Option(help="Leave the logs.")] = False,
) -> None:
    """End a testbed and delete its folder."""
    read_manifest(directory)
    stop_recorded(Supervisor(directory))
    clean(directory, keep_logs=keep_logs)


def _start_detached(cluster: ProcessCluster) -> None:
    try:
        cluster.start()
    except BaseException:
        cluster.stop(keep_logs=True)
        raise
    _describe(cluster.run_dir)
    _console.print(f"End it: python -m testbed down --dir {cluster.run_dir}", markup=False)


def _describe(directory: Path) -> None:
    facts = read_manifest(directory)
    _console.print(f"export KUBECONFIG={facts['kubeconfig']}", markup=False)
    _console.print(f"kubectl: {facts['kubectl']}", markup=False)
    for name, bootstrap in facts["kafka"].items():
        _console.print(f"Kafka {name}: {bootstrap}", markup=False)
    for image in facts["images"]:
        _console.print(f"image: {image}", markup=False)
    for name, value in facts["sparkConf"].items():
        _console.print(f"sparkConf: {name}: {value}", markup=False)
