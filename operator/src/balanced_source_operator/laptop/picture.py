"""What a run shows: a live picture on a terminal, a line per micro-batch elsewhere."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.text import Text

from balanced_source.names import counted
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
    """Prints what is new: phases of the start, problems, rescales and micro-batches."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._phase = ""
        self._notes: dict[tuple[str, ...], str] = {}
        self._readers: int | None = None
        self._batch: int | None = None

    def __call__(self, view: SourceView, progress: QueryProgress) -> None:
        """Print a line for each piece of news."""
        news = (
            *self._started(progress),
            *self._noted(view),
            *self._rescaled(view),
            *self._read(view, progress),
        )
        for line in news:
            self._console.print(line, soft_wrap=True, markup=False, highlight=False)

    def _started(self, progress: QueryProgress) -> Iterator[str]:
        phase = _phase(progress)
        if phase not in ("", self._phase):
            yield phase
        self._phase = phase

    def _noted(self, view: SourceView) -> Iterator[str]:
        """A text that replaces another one under its key is news; what it replaces is not over."""
        before, self._notes = self._notes, {**view.problems, **{(n,): n for n in view.notes}}
        over = [note for key, note in before.items() if key not in self._notes]
        now, then = dict.fromkeys(self._notes.values()), frozenset(before.values())
        yield from (f"resolved: {_headline(note)}" for note in over if note not in now)
        yield from (note for note in now if note not in then)

    def _rescaled(self, view: SourceView) -> Iterator[str]:
        # Zero before the first assignment of a query, which is no rescale.
        if view.adopted is None or view.adopted.parallelism in (0, self._readers):
            return
        before, self._readers = self._readers, view.adopted.parallelism
        if before is not None:
            yield (
                f"rescaled from {before}: epoch {view.adopted.epoch},"
                f" {counted(self._readers, 'reader')}, {counted(len(view.owners), 'split')}"
            )

    def _read(self, view: SourceView, progress: QueryProgress) -> Iterator[str]:
        """A micro-batch is named once, with the epoch and the readers that it had."""
        if progress.batch is None or progress.batch == self._batch:
            return
        self._batch = progress.batch
        epoch = view.epoch if progress.epoch is None else progress.epoch
        readers = view.parallelism if progress.readers is None else progress.readers
        # The view has what was unread when the driver reported, with the records of this one.
        lag = render.lag_text(view) if progress.lag is None else render.number(progress.lag)
        where = f"epoch {epoch}, {counted(readers, 'reader')}, {counted(len(view.owners), 'split')}"
        if not readers:
            where = "splits are not assigned yet"
        yield (
            f"batch {progress.batch}: {counted(progress.last_rows, 'row')} in"
            f" {progress.seconds:.2f} s; {counted(progress.rows, 'row')} so far; {where},"
            f" lag {lag}"
        )


def _headline(note: str) -> str:
    """Return the first sentence: what to do about a problem no longer matters."""
    return note.splitlines()[0].split(". ", 1)[0]


def _phase(progress: QueryProgress) -> str:
    """Return what the run waits for; nothing after the first micro-batch."""
    if not progress.is_started:
        return "Spark is starting …"
    return "waiting for the first micro-batch …" if progress.batch is None else ""


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
    if phase := _phase(progress):
        return Text(phase)
    newest = f"batch {progress.batch}: {counted(progress.last_rows, 'row')}"
    return Text(f"{newest} in {progress.seconds:.2f} s; {counted(progress.rows, 'row')} so far")


def _bar(view: SourceView, progress: QueryProgress) -> RenderableType:
    """How much of the source has been read by this run."""
    if view.lag is None or progress.rows + view.lag == 0:
        return ProgressBar(total=None, pulse=True, width=60)
    return ProgressBar(total=progress.rows + view.lag, completed=progress.rows, width=60)
