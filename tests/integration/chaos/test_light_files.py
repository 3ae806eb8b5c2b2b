"""A fixed schedule of the light engine over files: it needs no broker."""

from pathlib import Path
from typing import Final

import pytest

from chaos.light.files import run_files
from chaos.light.zygote import Zygote
from chaos.world import Fault

pytestmark = pytest.mark.integration

KINDS: Final = ("crash_driver", "rescale", "kill_worker", "kill_operator", "kill_driver")


def test_every_line_arrives_once_through_crashes_and_rescales(tmp_path: Path) -> None:
    faults = tuple(
        Fault(kind=kind, number=number, after=0.7, lasts=1) for number, kind in enumerate(KINDS)
    )

    with Zygote() as zygote:
        outcome = run_files(1, tmp_path / "run", zygote=zygote, tell=print, faults=faults)

    assert outcome.is_ok, (outcome, (tmp_path / "run" / "logs" / "driver.log").read_text()[-3000:])
    assert outcome.verdict["records"] > 0
