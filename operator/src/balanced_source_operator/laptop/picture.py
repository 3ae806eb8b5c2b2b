"""What a run shows: a live picture on a terminal, a line per micro-batch elsewhere."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.text import Text

from balanced_source_operator.laptop.driver import QueryProgress
from balanced_source_operator.laptop.run import Show
from balanced_source_operator.views import render
from balanced_source_operator.views.model import SourceView


@contextmanager
def picture(console: Console) -> Iterator[Show]:
    """Return what shows a run, until it ends."""
    if not console.is_terminal:
        yield _Lines(console)
        return
    with Live(console=console, auto_refresh=False) as live:
        pictures = _Pictures()
        yield lambda view, progress: live.update(pictures.of(view, progress), refresh=True)


class _Lines:
    def __init__(self, console: Console) -> None:
        self._console = console
        self._last: tuple[int | None, int] = (None, 0)
        self._notes: tuple[str, ...] = ()

    def __call__(self, view: SourceView, progress: QueryProgress) -> None:
        """Print a line if there is news."""
        readers = view.adopted.parallelism if view.adopted else 0
        now = (progress.batch, readers)
        if view.notes != self._notes:
            self._notes = view.notes
            self._console.print(*view.notes, sep="\n", soft_wrap=True, markup=False)
        if now != self._last and progress.batch is not None:
            self._last = now
            self._console.print(
                f"batch {progress.batch}: {progress.last_rows} rows in {progress.seconds:.2f} s;"
                f" {progress.rows} rows so far; epoch {view.epoch}, {readers} readers,"
                f" {len(view.owners)} splits, lag {render.lag_text(view)}",
                soft_wrap=True,
                markup=False,
                highlight=False,
            )


class _Pictures:
    """Draws a run. Rates come from two reports, so the last different one is kept."""

    def __init__(self) -> None:
        self._now: SourceView | None = None
        self._before: SourceView | None = None

    def of(self, view: SourceView, progress: QueryProgress) -> RenderableType:
        """Return the picture: a bar, and a row per reader."""
        if self._now is None or view.adopted != self._now.adopted:
            self._before, self._now = self._now, view
        return Group(_head(progress), _bar(view, progress), render.detail(view, self._before))


def _head(progress: QueryProgress) -> Text:
    if not progress.is_started:
        return Text("Spark is starting …")
    if progress.batch is None:
        return Text("waiting for the first micro-batch …")
    newest = f"batch {progress.batch}: {progress.last_rows:,} rows in {progress.seconds:.2f} s"
    return Text(f"{newest}; {progress.rows:,} rows so far")


def _bar(view: SourceView, progress: QueryProgress) -> RenderableType:
    """How much of the source has been read by this run."""
    if view.lag is None or progress.rows + view.lag == 0:
        return ProgressBar(total=None, pulse=True, width=60)
    return ProgressBar(total=progress.rows + view.lag, completed=progress.rows, width=60)
