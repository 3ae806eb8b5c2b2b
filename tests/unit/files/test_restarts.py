"""Queries of files that are started again and again, as Spark calls them, without its JVM."""

import itertools
import threading
from collections import Counter
from pathlib import Path

import pytest

from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.errors import BalancedSourceError
from balanced_source_adapters.folder import FolderStore
from balanced_source_spark.host_runtime import HostRuntime
from support.files_checkpoint import Checkpoint

LOOKS = 20
"""Looks for the end of the source, until a state is stored."""


PATIENT = {"startTimeoutSeconds": "60"}
REFUSED = {"startTimeoutSeconds": "5"}
"""A query with an end waits so long before it says why it stands still."""


@pytest.fixture
def checkpoint(tmp_path: Path) -> Checkpoint:
    made = Checkpoint(tmp_path)
    made.write("a", ["1"] * 100, at=1_700_000_000)
    made.write("b", ["2"], at=1_700_000_001)
    return made


@pytest.fixture(params=[True, False], ids=["with stateDir", "without"])
def state(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    return {"stateDir": str(tmp_path / "state")} if request.param else {}


def test_files_that_were_read_may_be_deleted(checkpoint: Checkpoint, state: dict[str, str]) -> None:
    checkpoint.run(**state)
    (checkpoint.files / "a").unlink()
    checkpoint.write("c", ["3"], at=1_700_000_002)
    checkpoint.run(**state)

    assert checkpoint.lines == Counter({"1": 100, "2": 1, "3": 1})


@pytest.mark.parametrize(
    ("lines", "is_gone"), [(["short"], True), (["1"] * 100 + ["appended"] * 100, False)]
)
def test_changes_of_files_that_were_read_are_reported(
    checkpoint: Checkpoint, state: dict[str, str], lines: list[str], *, is_gone: bool
) -> None:
    """Neither all of the file nor its new blocks alone would be what was asked for."""
    checkpoint.run(**state, splitBytes="100")
    if is_gone:
        (checkpoint.files / "a").unlink()
        checkpoint.run(**state, splitBytes="100")
    checkpoint.write("a", lines, at=1_700_000_003)
    checkpoint.write("c", ["3"], at=1_700_000_004)

    with pytest.raises(BalancedSourceError, match="1 file changed after being listed"):
        checkpoint.run(**state, splitBytes="100")
    assert checkpoint.lines == Counter({"1": 100, "2": 1})
    checkpoint.run(**state, splitBytes="100", onLoss="Skip")
    assert checkpoint.lines == Counter({"1": 100, "2": 1, "3": 1})


@pytest.mark.parametrize(("former", "now"), [("100", "50"), ("50", "100"), ("100", "150")])
def test_blocks_of_another_size_repeat_nothing(
    tmp_path: Path, state: dict[str, str], former: str, now: str
) -> None:
    made, lines = Checkpoint(tmp_path), [str(number) for number in range(100, 300)]
    made.write("a", lines, at=1_700_000_000)
    made.run(**state, splitBytes=former)
    made.write("b", ["new"], at=1_700_000_001)
    if not state:
        # The checkpoint alone names the blocks.
        with pytest.raises(BalancedSourceError, match="1 file had blocks of another size"):
            made.run(splitBytes=now)
        now = former
    made.run(**state, splitBytes=now)

    assert made.lines == Counter([*lines, "new"])


@pytest.mark.parametrize("files", [3, 3000])
def test_older_files_of_other_paths_are_not_left_out_without_a_word(
    checkpoint: Checkpoint, tmp_path: Path, files: int
) -> None:
    """Counters of the former files, of which there are many, hide them."""
    state = {
        "stateDir": str(tmp_path / "state"),
        "lateWindow": "10s",
        "lookAhead": "1000",
        **PATIENT,
    }
    for number in range(files):
        checkpoint.write(f"many/{number}", ["many"], at=1_700_000_100 + 60 * number)
    checkpoint.run(**state)
    checkpoint.files = tmp_path / "other"
    checkpoint.files.mkdir()
    checkpoint.write("older", ["older"], at=1_600_000_000)
    checkpoint.write("newer", ["newer"], at=1_800_000_000)

    with pytest.raises(BalancedSourceError, match=r"paths were changed, and 1 file .*other/older"):
        checkpoint.run(**{**state, **REFUSED})
    assert checkpoint.lines["newer"] == 0
    checkpoint.run(**state, onLoss="Skip")
    assert checkpoint.lines == Counter({"1": 100, "2": 1, "many": files, "newer": 1})
    checkpoint.run(**state)


def test_a_path_that_comes_back_doubles_nothing(checkpoint: Checkpoint, tmp_path: Path) -> None:
    state = {"stateDir": str(tmp_path / "state"), "lateWindow": "10s", **PATIENT}
    both, folder = checkpoint.files, checkpoint.files / "below"
    checkpoint.write("below/c", ["3"], at=1_700_000_100)
    checkpoint.run(**state)
    checkpoint.files = folder
    checkpoint.write("d", ["4"], at=1_700_000_200)
    checkpoint.run(**state)
    checkpoint.files = both

    with pytest.raises(BalancedSourceError, match=r"2 files of the new ones, such as .*/in/[ab], "):
        checkpoint.run(**{**state, **REFUSED})
    checkpoint.write("e", ["5"], at=1_700_000_300)
    checkpoint.run(**state, onLoss="Skip")
    assert checkpoint.lines == Counter({"1": 100, "2": 1, "3": 1, "4": 1, "5": 1})


def test_a_state_that_was_used_before_is_needed_again(
    checkpoint: Checkpoint, tmp_path: Path
) -> None:
    checkpoint.run(stateDir=str(tmp_path / "state"))

    with pytest.raises(BalancedSourceError, match="set stateDir to the same folder again"):
        checkpoint.run()
    checkpoint.run(stateDir=str(tmp_path / "state"))
    assert checkpoint.lines == Counter({"1": 100, "2": 1})


def test_the_end_that_a_former_query_had_is_not_the_end_of_this_one(
    checkpoint: Checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow disk delays the assignment of this query: until then, there is the former one."""
    folder = str(tmp_path / "state")
    for _ in range(2):  # the second run adopts the epoch in which nothing is left
        checkpoint.run(stateDir=folder)
    checkpoint.write("c", ["3"], at=1_700_000_002)
    has_looked, looks = threading.Event(), itertools.count()
    swap, is_finished = FolderStore.swap, HostRuntime.is_finished

    def slow(store: FolderStore, text: str) -> None:
        has_looked.wait(20)
        swap(store, text)

    def noted(runtime: HostRuntime, offset: StreamOffset) -> bool:
        if next(looks) > LOOKS:
            has_looked.set()
        return is_finished(runtime, offset)

    monkeypatch.setattr(FolderStore, "swap", slow)
    monkeypatch.setattr(HostRuntime, "is_finished", noted)
    checkpoint.run(stateDir=folder, startTimeoutSeconds="20")

    assert checkpoint.lines == Counter({"1": 100, "2": 1, "3": 1})


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_a_state_folder_that_cannot_be_used_is_named(
    checkpoint: Checkpoint, tmp_path: Path, place: str
) -> None:
    (tmp_path / "file").write_text("no folder")

    with pytest.raises(
        BalancedSourceError, match=r"the stored state .*file.* cannot be used: Not a"
    ):
        checkpoint.run(stateDir=str(tmp_path / place))


@pytest.mark.parametrize("damage", ["", '{"a":'])
def test_a_damaged_state_is_named(checkpoint: Checkpoint, tmp_path: Path, damage: str) -> None:
    """As after a loss of power."""
    state = tmp_path / "state"
    state.mkdir()
    (state / "enumerator.json").write_text(damage)

    with pytest.raises(BalancedSourceError, match=r"^the stored state .*/enumerator.json is damag"):
        checkpoint.run(stateDir=str(state))
