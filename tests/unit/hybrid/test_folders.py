"""Folders that are read in turn, by a query that ends."""

import json
from collections import Counter
from pathlib import Path

import pytest

from support.files_checkpoint import Checkpoint


@pytest.mark.parametrize("sizes", [(1, 1), (2, 0, 1), (0, 1, 1), (1, 1, 0)])
def test_parts_follow_each_other_without_waiting_for_a_sign_of_life(
    tmp_path: Path, sizes: tuple[int, ...]
) -> None:
    """The next part waits for the report that says that the files of a part are delivered."""
    checkpoint = Checkpoint(tmp_path)
    common = {"connector": "files", "fileFormat": "text", "metadataColumns": "false"}
    parts = []
    for part, size in enumerate(sizes):
        folder = checkpoint.files / str(part)
        folder.mkdir()
        parts.append({**common, "path": str(folder)})
        for number in range(size):
            checkpoint.write(f"{part}/{number}", [f"{part}-{number}"], at=1_700_000_000)

    checkpoint.run(
        connector="hybrid",
        parts=json.dumps(parts),
        stateDir=str(tmp_path / "state"),
        startTimeoutSeconds="7",  # less than HEARTBEAT_INTERVAL
    )

    assert checkpoint.lines == Counter(
        f"{part}-{number}" for part, size in enumerate(sizes) for number in range(size)
    )
