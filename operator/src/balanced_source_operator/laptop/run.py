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
from balanced_source.names import counted
from balanced_source_operator.controller.translate import reader_options
from balanced_source_operator.laptop.changes import pending_changes
from balanced_source_operator.laptop.driver import LaptopDriver, QueryProgress, check_prerequisites
from balanced_source_operator.laptop.look import LocalLook
from balanced_source_operator.laptop.sink_folder import check_sink_folder
from balanced_source_operator.laptop.start_over import StartOver
from balanced_source_operator.local import UID, LocalOperator, read_name, read_spec
from balanced_source_operator.page.beside import page_in_thread
from balanced_source_operator.resources.identity import Identity
from balanced_source_operator.resources.pod_templates import driver_environment
from balanced_source_operator.spec import BalancedSourceSpec
from balanced_source_operator.spec.application import PACKAGED_APPLICATION, PipelineSpec
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
        environment, pipeline = local_environment(name, spec, file), packaged_pipeline(spec)
    check_prerequisites()
    where = (folder or Path(".balanced-source") / name).absolute()
    start_over = StartOver(pipeline, where)
    with located(file), start_over.advising():
        check_sink(spec.application)
        check_sink_folder(pipeline)
    where.mkdir(parents=True, exist_ok=True)
    with (
        start_over.advising(),
        _page(name, page_port, where) as publish,
        _serving(file, where, start_over) as operator,
    ):
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
            operator.also_note({("changes",): "; ".join(changes)} if changes else {})
            show(_view(operator, where, name), driver.progress)
            publish(operator)

        return _noted(operator, lambda: _followed(operator, driver, show_everywhere))


def _noted(operator: LocalOperator, follow: Callable[[], Ending]) -> Ending:
    """Leave word of how a run has ended for those who look at the folder."""
    try:
        ending = follow()
    except InvalidSpecError as error:
        operator.note_ending(f"failed: {error}")
        raise
    operator.note_ending(ending.sentence)
    return ending


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
    packaged_pipeline(spec)
    found = driver_environment(
        Identity(namespace="local", name=name, uid=UID),
        spec.application,
        spec.source.kind,
        reader_options(spec),
    )
    return replace(found, secrets_dir=str(file.parent.absolute()))


def packaged_pipeline(spec: BalancedSourceSpec) -> PipelineSpec:
    """Return the pipeline that the packaged application runs.

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
    return application.pipeline


@contextmanager
def _serving(file: Path, folder: Path, start_over: StartOver) -> Iterator[LocalOperator]:
    with located(file):
        operator = LocalOperator(file, folder, explain=problems_in, advise=start_over.advise)
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
        else f"after batch {progress.batch} ({counted(progress.rows, 'row')} in this run)"
    )


def _failure(driver: LaptopDriver) -> InvalidSpecError:
    return InvalidSpecError(
        f"the query failed. The file has the whole log; the reason is:\n{driver.last_words()}",
        field=str(driver.log),
    )


def _view(operator: LocalOperator, folder: Path, name: str) -> SourceView:
    view = gather.of_folder(folder, name=name, desired=operator.parallelism)
    return replace(view, problems=operator.notes)
