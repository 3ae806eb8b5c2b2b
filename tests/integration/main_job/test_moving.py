"""A source moves to another Kubernetes cluster by the commands of the page about operations."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.page_commands import commands, run
from support.page_table import PLACEHOLDERS
from support.source_scene import SourceScene as World
from support.stand_in_driver import StandInDriver
from support.story.operator_process import OperatorProcess
from testbed.control_plane import ControlPlane
from testbed.versions import CHECKOUT

from .conftest import FAST

PAGE = "operations.md"
SPLITS = 4
"""Two topics of two partitions each."""


@pytest.fixture(scope="module")
def new_cluster(
    tmp_path_factory: pytest.TempPathFactory, spark_crds: Path
) -> Iterator[ControlPlane]:
    """Another Kubernetes cluster, with an operator."""
    crds = [spark_crds, CHECKOUT / "crds"]
    with ControlPlane(tmp_path_factory.mktemp("new-cluster"), crds=crds) as started:
        process = OperatorProcess(started, settings=FAST)
        process.start()
        yield started
        process.stop()


def page_command(world: World, pattern: str, folder: Path) -> str:
    """Run the one command of the page with these words in the namespace of a world."""
    [text] = {c.text for c in commands(PAGE) if re.search(pattern, c.text)}
    for placeholder, value in PLACEHOLDERS.items():
        text = re.sub(placeholder, value, text)
    [outcome] = run([text], folder=folder, environment=shell(world, folder))
    assert outcome.code == 0, outcome
    return outcome.out


def shell(world: World, folder: Path) -> Mapping[str, str]:
    """A shell whose `kubectl` asks the cluster of a world, in its namespace."""
    config = yaml.safe_load(world.control_plane.kubeconfig().read_text())
    for context in config["contexts"]:
        context["context"]["namespace"] = world.namespace
    file = folder / "kubeconfig"
    file.write_text(yaml.safe_dump(config))
    programs = world.control_plane.program.parent
    return {"PATH": f"{programs}:/usr/bin:/bin", "HOME": str(folder), "KUBECONFIG": str(file)}


def topics(world: World, *names: str) -> dict[str, Any]:
    return world.kafka_spec(subscription={"topics": [f"{world.topic}-{name}" for name in names]})


def is_paused(world: World) -> bool:
    return bool(world.source.status.get("application", {}).get("state") == "Paused")


def stopped(world: World) -> StandInDriver:
    """A driver whose source was suspended after one of its two topics had left the spec."""
    for name in ("kept", "left"):
        world.kafka.admin.create_topic(f"{world.topic}-{name}", partitions=SPLITS // 2)
    world.apply(source=topics(world, "kept", "left"))
    driver = world.driver()
    driver.adopt(parallelism=2)
    driver.batch(rows_per_split=5)
    world.source.patch({"source": topics(world, "kept")})
    read_until(world, driver, splits=SPLITS // 2)
    driver.batch(rows_per_split=2)

    world.source.patch({"suspend": True})
    world.wait(lambda: is_paused(world), "the application to end")
    driver.close()
    return driver


def read_until(world: World, driver: StandInDriver, *, splits: int) -> None:
    """Run micro-batches until one has so many splits."""

    def is_reached() -> bool:
        driver.batch()
        return len(driver.offset.owners) == splits

    world.wait(is_reached, f"an assignment of {splits} splits")


def positions(driver: StandInDriver) -> dict[str, set[int | None]]:
    """Positions of the splits that are read, by the last word of their topic's name."""
    found: dict[str, set[int | None]] = {}
    for split in driver.offset.owners:
        topic = str(split[-2]).rpartition("-")[2]
        found.setdefault(topic, set()).add(driver.offset.positions[split])
    return found


def moved(world: World, new: World, **metadata: Any) -> None:
    """Apply the source in its new cluster, where it may start."""
    manifest = new.manifest(source=topics(world, "kept"))
    manifest["metadata"] |= metadata
    new.control_plane.apply(manifest)


def successor(world: World, before: StandInDriver) -> StandInDriver:
    """A driver with a copy of another one's checkpoint that has adopted an epoch of its own."""
    driver = world.driver(before)
    world.wait(lambda: driver.batch() and driver.offset.epoch > before.offset.epoch, "an epoch")
    return driver


def deadlines(world: World) -> list[Any]:
    """Until when the operator keeps positions of splits that are not read now."""
    document = (world.config_map("enumerator") or {})["data"]["document.json"]
    return list(json.loads(document)["body"]["enumerator"]["state"]["retainedUntil"])


def test_documents_move_along_with_the_checkpoint(
    world: World, new_cluster: ControlPlane, tmp_path: Path
) -> None:
    before, kept_until = stopped(world), deadlines(world)
    assert json.loads(page_command(world, "tee documents", tmp_path))["items"]
    uid = world.source.get()["metadata"]["uid"]

    new = World(new_cluster, world.kafka, world.namespace)
    page_command(new, "apply -f documents", tmp_path)
    moved(world, new, annotations={"balancedsource.io/former-uid": uid})
    driver = successor(new, before)

    assert positions(driver) == {"kept": {7}}
    assert deadlines(new) == kept_until
    assert "StateOutdated" not in new.events()
    assert new.source.condition("Degraded")["status"] == "False"
    new.source.patch({"source": topics(world, "kept", "left")})
    read_until(new, driver, splits=SPLITS)
    assert positions(driver) == {"kept": {7}, "left": {5}}
    new.close()


def test_the_checkpoint_alone_has_all_positions(world: World, new_cluster: ControlPlane) -> None:
    before, kept_until = stopped(world), deadlines(world)

    new = World(new_cluster, world.kafka, world.namespace)
    moved(world, new)
    driver = successor(new, before)

    assert positions(driver) == {"kept": {7}}
    new.wait(lambda: deadlines(new) > kept_until, "a deadline that begins with the move")
    new.source.patch({"source": topics(world, "kept", "left")})
    read_until(new, driver, splits=SPLITS)
    assert positions(driver) == {"kept": {7}, "left": {5}}
    new.close()
