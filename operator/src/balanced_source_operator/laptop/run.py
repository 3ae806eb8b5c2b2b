"""Serves a source and runs its query until it ends or the user stops it."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from balanced_source.documents.environment import DriverEnvironment
from balanced_source.errors import InvalidSpecError
from balanced_source_operator.controller.translate import reader_options
from balanced_source_operator.laptop.changes import pending_changes
from balanced_source_operator.laptop.driver import LaptopDriver, QueryProgress, check_prerequisites
from balanced_source_operator.laptop.look import LocalLook
from balanced_source_operator.laptop.sink_folder import check_sink_folder
from balanced_source_operator.local import UID, LocalOperator, read_name, read_spec
from balanced_source_operator.page.beside import page_in_thread
from balanced_source_operator.resources.identity import Identity
from balanced_source_operator.resources.spark_application import driver_environment
from balanced_source_operator.spec import BalancedSourceSpec
from balanced_source_operator.spec.application import PACKAGED_APPLICATION
from balanced_source_operator.validation.manifests import located, problems_in
from balanced_source_operator.validation.sink import check_sink
from balanced_source_operator.views import gather
from balanced_source_operator.views.model import SourceView

POLL: Final = 0.2
"""Seconds between looks."""

MIN_SLOTS: Final = 8
"""Task slots are threads here: enough of them that a larger parallelism finds free ones."""

Show = Callable[[SourceView, QueryProgress], None]


class Ending(NamedTuple):
    """How a run has ended: the exit code of the command, and a sentence for the user."""

    code: int
    sentence: str


def run(file: Path, folder: Path | None, show: Show, *, page_port: int = 0) -> Ending:
    """Run the manifest in a file until it ends or is interrupted; return how it has ended.

    Args:
        file: the BalancedSource. Changes take effect while it runs.
        folder: for documents and log; None for ``.balanced-source/NAME`` in the current folder.
        show: called with the state of the source, a few times per second.
        page_port: port of the status page on the loopback interface; 0 serves none.

    Raises:
        InvalidManifestError: the manifest is invalid. Says where.
        InvalidSpecError: the manifest cannot run here. Says why.
        BalancedSourceError: the port of the status page cannot be used.
    """
    # Before anything is started or written: what is missing is said at once.
    with located(file):
        name, spec = read_name(file), read_spec(file)
        environment = local_environment(name, spec, file)
    check_prerequisites()
    with located(file):
        check_sink(spec.application)
        if spec.application.pipeline is not None:
            check_sink_folder(spec.application.pipeline)
    where = (folder or Path(".balanced-source") / name).absolute()
    where.mkdir(parents=True, exist_ok=True)
    with _page(name, page_port, where) as publish, _serving(file, where) as operator:
        driver = LaptopDriver(
            environment,
            folder=where,
            # Fixed for the life of the JVM, and the manifest may ask for more readers later.
            slots=max(MIN_SLOTS, os.cpu_count() or 1, spec.parallelism),
            conf=spec.application.spark_conf,
            python_path=(file.parent.absolute(),),
        )

        def show_everywhere() -> None:
            changes = pending_changes(spec, operator.spec)
            show(_view(operator, where, name, notes=changes), driver.progress)
            publish(operator)

        return _followed(operator, driver, show_everywhere)


@contextmanager
def _page(name: str, port: int, folder: Path) -> Iterator[Callable[[LocalOperator], None]]:
    """Serve the status page, if there is to be one; yield what shows the source on it."""
    if not port:
        yield lambda _: None
        return
    with page_in_thread(name, port) as publish:
        yield LocalLook(folder, publish)


def local_environment(name: str, spec: BalancedSourceSpec, file: Path) -> DriverEnvironment:
    """Return what the driver of a local run is told: Secrets are folders beside the manifest.

    Raises:
        InvalidSpecError: the application is not the packaged one.
    """
    application = spec.application
    if application.main_application_file != PACKAGED_APPLICATION or application.pipeline is None:
        raise InvalidSpecError(
            "only the packaged application runs here. Start your own program with spark-submit, "
            "and serve the source with: balanced-source local",
            field="spec.application.mainApplicationFile",
        )
    found = driver_environment(
        Identity(namespace="local", name=name, uid=UID),
        application,
        spec.source.kind,
        reader_options(spec),
    )
    return replace(found, secrets_dir=str(file.parent.absolute()))


@contextmanager
def _serving(file: Path, folder: Path) -> Iterator[LocalOperator]:
    with located(file):
        operator = LocalOperator(file, folder, explain=problems_in)
    operator.start()
    try:
        yield operator
    finally:
        operator.close()


def _followed(operator: LocalOperator, driver: LaptopDriver, show: Callable[[], Any]) -> Ending:
    """Follow the query to its end. An interruption stops it in order."""
    try:
        while driver.exit_code is None:
            operator.look()
            show()
            time.sleep(POLL)
    except KeyboardInterrupt:
        return _stopped(driver, show)
    # Whatever went wrong here, no Spark process may be left behind.
    except BaseException:
        driver.stop()
        raise
    code = driver.stop()
    show()
    if code:
        raise _failure(driver)
    return Ending(0, f"ended {_last_batch(driver.progress)}")


def _stopped(driver: LaptopDriver, show: Callable[[], Any]) -> Ending:
    """Stop the query as the user asks."""
    code = driver.stop()
    show()
    if code == -signal.SIGKILL:
        return Ending(
            1,
            f"killed {_last_batch(driver.progress)}: the micro-batch did not end in time, or the"
            " command was interrupted twice. The next run repeats that micro-batch",
        )
    # It may be told to stop before it can handle the signal.
    if code not in (0, -signal.SIGTERM):
        raise _failure(driver)
    return Ending(0, f"stopped {_last_batch(driver.progress)}")


def _last_batch(progress: QueryProgress) -> str:
    return (
        "before the first micro-batch"
        if progress.batch is None
        else f"after batch {progress.batch} ({progress.rows} rows in this run)"
    )


def _failure(driver: LaptopDriver) -> InvalidSpecError:
    return InvalidSpecError(
        f"the query failed. Its log ends with:\n{driver.last_words()}", field=str(driver.log)
    )


def _view(
    operator: LocalOperator, folder: Path, name: str, *, notes: tuple[str, ...]
) -> SourceView:
    view = gather.of_folder(folder, name=name, desired=operator.parallelism)
    problems = (problem.message for problem in operator.problems)
    return replace(view, notes=(*view.notes, *problems, *notes))
