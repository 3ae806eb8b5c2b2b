"""A fixed schedule of the light engine over a stream: it needs a Kinesis server."""

from pathlib import Path
from typing import Final

import pytest

from chaos.light.streams import run_stream
from chaos.light.zygote import Zygote
from chaos.world import Fault
from testbed.kinesis import ENVIRONMENT, kinesis_server

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(600)]

KINDS: Final = (
    "split_twice",
    "crash_driver",
    "rescale",
    "merge_shards",
    "kill_worker",
    "kill_operator",
    "recount_shards",
    "kill_driver",
)


def test_every_record_arrives_once_and_in_order_through_crashes_and_resharding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in ENVIRONMENT.items():  # the standard chain of drivers and tasks
        monkeypatch.setenv(name, value)
    faults = tuple(
        Fault(kind=kind, number=number, after=1, lasts=1) for number, kind in enumerate(KINDS)
    )

    with kinesis_server() as endpoint, Zygote() as zygote:
        outcome = run_stream(
            1, tmp_path / "run", endpoint, zygote=zygote, tell=print, faults=faults
        )

    assert outcome.is_ok, (outcome, (tmp_path / "run" / "logs" / "driver.log").read_text()[-3000:])
    assert outcome.verdict["records"] > 0
