"""A fixed schedule of the light engine over files that a topic follows."""

from pathlib import Path
from typing import Final

import pytest

from chaos.light.brokers import Brokers
from chaos.light.hybrid import run_hybrid
from chaos.light.zygote import Zygote
from chaos.world import Fault
from testbed.progress import Progress

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(600)]

KINDS: Final = (
    "crash_driver",
    "rescale",
    "kill_worker",
    "kill_operator",
    "crash_driver",
    "rescale",
    "kill_driver",
)


def test_every_record_arrives_once_and_the_history_first(tmp_path: Path) -> None:
    faults = tuple(
        Fault(kind=kind, number=number, after=0.7, lasts=1) for number, kind in enumerate(KINDS)
    )

    with (
        Brokers(tmp_path / "brokers", Progress(), {"main": 1}) as brokers,
        Zygote() as zygote,
    ):
        outcome = run_hybrid(1, tmp_path / "run", brokers, zygote=zygote, tell=print, faults=faults)

    assert outcome.is_ok, (outcome, (tmp_path / "run" / "logs" / "driver.log").read_text()[-3000:])
    assert outcome.verdict["records"] > 0
