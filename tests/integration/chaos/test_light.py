"""A fixed schedule of the light engine.

A crash at each kind of step, a worker, the operator, and rescales.
"""

from pathlib import Path
from typing import Final

import pytest

from chaos.light.brokers import Brokers
from chaos.light.run import run
from chaos.light.zygote import Zygote
from chaos.world import Fault, Schedule, World
from testbed.builds import Builder
from testbed.progress import QUIET

pytestmark = pytest.mark.integration

KINDS: Final = (
    "crash_driver",
    "rescale",
    "kill_worker",
    "kill_operator",
    "kill_driver",
    "grow_topic",
    "kill_broker",
)


def test_every_record_arrives_once_through_crashes_and_rescales(tmp_path: Path) -> None:
    """A cluster of one broker; topics with transactions, of which some are aborted.

    Tasks that are dropped.
    """
    world = World(
        seed=0,
        topics={"main": {"chaos0-a": 3, "chaos0-b": 1}},
        max_records_per_reader=50,
        drop_share=0.2,
    )
    faults = tuple(
        Fault(kind=kind, number=number, after=0.7, lasts=1) for number, kind in enumerate(KINDS)
    )
    program = Builder().ensure("linearisable")["linearisable"]

    schedule = Schedule(world=world, faults=faults)
    with Brokers(tmp_path / "brokers", QUIET, nodes={"main": 1}) as brokers, Zygote() as zygote:
        outcome = run(
            schedule, brokers, tmp_path / "run", zygote=zygote, program=program, tell=print
        )

    assert outcome.is_ok, (outcome, (tmp_path / "run" / "logs" / "driver.log").read_text()[-3000:])
    assert outcome.verdict["records"] > world.prefill
