"""What commands that change something do, beyond ending without an error.

The tests change the source one after the other: the order matters.
"""

import re
from pathlib import Path

import pytest

from support.page_commands import commands, run
from support.page_table import PLACEHOLDERS
from support.page_world import RELEASE, PageWorld
from testbed.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(600)]

DRIVER = "DRIVER=$(kubectl get pods -l spark-role=driver -o name)"
SETTINGS = ("NAMESPACE=jobs NAME=orders", DRIVER)


def do(page: str, pattern: str, world: PageWorld, folder: Path) -> None:
    """Run the one command of a page that has these words, as it is written."""
    [text] = {c.text for c in commands(page) if re.search(pattern, c.text)}
    for placeholder, value in PLACEHOLDERS.items():
        text = re.sub(placeholder, value, text)
    outcomes = run([*SETTINGS, text], folder=folder, environment=world.shell(folder))
    assert [outcome.code for outcome in outcomes] == [0, 0, 0], outcomes


def is_paused(world: PageWorld) -> bool:
    return world.source.condition("Paused").get("status") == "True"


def test_a_source_is_paused_until_the_annotation_is_removed(
    world: PageWorld, tmp_path: Path
) -> None:
    do("operations.md", "paused=true", world, tmp_path)
    wait_until(lambda: is_paused(world), 30, "the pause", interval=0.2)

    world.kubectl("annotate", "bsrc/orders", "-n", "jobs", "balancedsource.io/paused-")
    wait_until(lambda: not is_paused(world), 30, "the end of the pause", interval=0.2)


def test_more_readers_take_over(world: PageWorld, tmp_path: Path) -> None:
    do("runbooks/BalancedSourceLagGrowing.md", "kubectl scale", world, tmp_path)

    wait_until(lambda: world.source.status["readers"] == 8, 120, "8 readers", interval=0.2)


def test_a_deleted_driver_pod_has_a_successor(world: PageWorld, tmp_path: Path) -> None:
    before = world.source.report.incarnation

    do("runbooks/BalancedSourceDriverSilent.md", "kubectl delete", world, tmp_path)

    world.wait_ready(after=before)


def test_a_deleted_application_is_started_again(world: PageWorld, tmp_path: Path) -> None:
    before, uid = world.source.report.incarnation, world.application_uid

    do("runbooks/BalancedSourceApplicationFailing.md", "kubectl delete", world, tmp_path)

    world.wait_ready(after=before)
    assert world.application_uid != uid


def test_a_nonce_restarts_the_application(world: PageWorld, tmp_path: Path) -> None:
    before, uid = world.source.report.incarnation, world.application_uid

    do("how-to/upgrades.md", "restart.*nonce", world, tmp_path)

    world.wait_ready(after=before)
    assert world.application_uid != uid


def test_the_log_of_an_operator_that_crashed_is_shown(world: PageWorld, tmp_path: Path) -> None:
    [pod] = world.cluster.pods("app.kubernetes.io/name=balanced-source", RELEASE)
    name = pod["metadata"]["name"]
    world.cluster.kill_pod_process(name, RELEASE)

    def restarts() -> int:
        found = world.cluster.control_plane.get("pods", name, RELEASE) or {}
        [container] = found["status"]["containerStatuses"]
        return container["restartCount"] if container["ready"] else 0

    wait_until(lambda: restarts() == 1, 120, "the operator to be ready again", interval=0.2)
    do("runbooks/BalancedSourceOperatorDown.md", "--previous", world, tmp_path)


def test_the_state_of_a_deleted_lease_is_made_again(world: PageWorld, tmp_path: Path) -> None:
    do("install.md", "delete lease", world, tmp_path)

    wait_until(
        lambda: world.cluster.control_plane.get("lease", "balanced-source-operator", RELEASE),
        60,
        "a new Lease",
        interval=0.2,
    )
