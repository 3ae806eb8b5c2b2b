"""Only objects with the source's uid are changed or deleted.

Those that lost their owner reference get it back.
"""

import asyncio
from typing import Any

import pytest

from balanced_source_operator.kube.port import RefusedError
from balanced_source_operator.resources.kinds import (
    BALANCED_SOURCE,
    CONFIG_MAP,
    EVENT,
    FORMER_UID_ANNOTATION,
    KUBEFLOW_APPLICATION,
    NAME_LABEL,
    ROLE,
    ROLE_BINDING,
    UID_LABEL,
    ResourceKind,
)
from support import cluster_story, fake_kubernetes, world
from support.cluster_story import NAMESPACE, Story
from support.played_story import played
from support.virtual_time import clock
from support.world import UID, Driver

NAMES = [
    (CONFIG_MAP, "orders-enumerator"),
    (CONFIG_MAP, "orders-assignment"),
    (CONFIG_MAP, "orders-readers"),
    (ROLE, "orders-documents"),
    (ROLE_BINDING, "orders-documents"),
    (KUBEFLOW_APPLICATION, "orders-1"),
]


async def read(story: Story, application: str = "orders-1") -> None:
    await story.launched(application)
    story.driver.start()
    await story.adopted(parallelism=2, splits=8)


def condition(story: Story, kind: str = "Degraded") -> dict[str, str]:
    found = story.status.get("conditions", [])
    return next(
        (c for c in found if c["type"] == kind), {"status": "", "reason": "", "message": ""}
    )


def theirs(kind: ResourceKind, name: str, **metadata: Any) -> dict[str, Any]:
    content = {"data": {"theirs": "1"}} if kind == CONFIG_MAP else {"spec": {"theirs": "1"}}
    where = {"namespace": NAMESPACE, "name": name, **metadata}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": where, **content}


@pytest.mark.parametrize(
    "labels", [{}, {NAME_LABEL: "orders"}], ids=["unlabelled", "with our name"]
)
@pytest.mark.parametrize(
    ("kind", "name"), NAMES, ids=lambda value: value if isinstance(value, str) else value.kind
)
def test_a_foreign_object_is_left_alone_and_named(
    kind: ResourceKind, name: str, labels: dict[str, str]
) -> None:
    async def play(story: Story) -> None:
        there = story.server.add(kind, theirs(kind, name, labels=labels))
        story.applications.clear()
        await story.begin()

        await story.until(lambda: condition(story)["reason"] == "ForeignObject", "a condition")

        assert (
            f"{kind.kind} {name} exists and does not belong to BalancedSource orders"
            in condition(story)["message"]
        )
        started = clock()
        await story.until(lambda: clock() - started > 120, "two minutes")
        assert story.server.find(kind, NAMESPACE, name) == there
        assert [
            e["type"]
            for e in story.server.select(EVENT, NAMESPACE)
            if e["reason"] == "ForeignObject"
        ] == ["Warning"]
        story.server.remove(kind, NAMESPACE, name)
        story.applications.clear()
        await read(story)
        await story.until(lambda: condition(story)["status"] == "False", "all is well")

    played(play)


def test_an_object_of_a_deleted_namesake_is_named_only_if_it_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Mostly the garbage collector is about to delete it."""
    monkeypatch.setattr(fake_kubernetes, "COLLECTION_DELAY", 60.0)
    former = {
        "apiVersion": BALANCED_SOURCE.api_version,
        "kind": BALANCED_SOURCE.kind,
        "name": "orders",
        "uid": "former",
    }

    async def play(story: Story) -> None:
        story.server.add(CONFIG_MAP, theirs(CONFIG_MAP, "orders-readers", ownerReferences=[former]))
        await story.begin()
        started = clock()
        await story.until(lambda: clock() - started > 8, "some seconds")
        assert condition(story)["reason"] != "ForeignObject"

        await story.until(lambda: condition(story)["reason"] == "ForeignObject", "a condition")

        assert clock() - started >= 10
        assert "belongs to a former BalancedSource orders" in condition(story)["message"]
        await story.until(lambda: condition(story)["reason"] != "ForeignObject", "it is gone")
        assert clock() - started >= 59

    played(play)


def test_the_metadata_of_clusters_may_have_the_name_of_a_document() -> None:
    """A ConfigMap that `clustersFrom` names is the user's, whatever its name is."""
    text = (
        "clusters: [{name: main, bootstrapServers: 'east:9092'}]\n"
        "streams: {orders: {main: [orders]}}\n"
    )
    source = {
        "kafka": {
            "clustersFrom": {"configMapRef": {"name": "orders-readers"}},
            "subscription": {"streams": ["orders"]},
        }
    }

    async def play(story: Story) -> None:
        story.metadata = text
        made = theirs(CONFIG_MAP, "orders-readers")
        there = story.server.add(CONFIG_MAP, {**made, "data": {"clusters.yaml": text}})
        await story.begin(source=source)
        await story.until(lambda: condition(story)["reason"] == "ForeignObject", "a condition")
        assert story.server.find(CONFIG_MAP, NAMESPACE, "orders-readers") == there

    played(play)


@pytest.mark.parametrize("lost", [["ownerReferences"], ["labels"]], ids="+".join)
@pytest.mark.parametrize("is_restarted", [False, True], ids=["in memory", "after a restart"])
@pytest.mark.parametrize("name", ["orders-enumerator", "orders-assignment", "orders-readers"])
def test_a_lost_owner_reference_is_restored_and_nothing_is_forgotten(
    name: str, is_restarted: bool, lost: list[str]
) -> None:
    async def play(story: Story) -> None:
        await story.begin()
        await read(story)
        owners, epoch = dict(story.owners), story.assignment and story.assignment.epoch
        if is_restarted:
            for operator in list(story.operators):
                await operator.stop()
                story.operators.remove(operator)
        before = story.server.find(CONFIG_MAP, NAMESPACE, name)["metadata"]
        story.server.edit(CONFIG_MAP, NAMESPACE, name, {"metadata": dict.fromkeys(lost)})
        if is_restarted:
            story.start_operator(name="operator-2")

        def metadata() -> dict[str, Any]:
            found = story.server.find(CONFIG_MAP, NAMESPACE, name)["metadata"]
            return {key: found.get(key) for key in ("uid", "ownerReferences", "labels")}

        await story.until(
            lambda: metadata().items() <= before.items(), "owner reference and labels"
        )
        await story.adopted(parallelism=2, splits=8)
        assert (dict(story.owners), story.assignment and story.assignment.epoch) == (owners, epoch)
        assert {lineage for lineage, _ in story.seen} == {1}, "the state is the same"

    played(play)


@pytest.mark.parametrize("name", ["orders-enumerator", "orders-assignment"])
def test_a_document_that_was_stripped_while_the_operator_runs_is_still_known(name: str) -> None:
    async def play(story: Story) -> None:
        await story.begin()
        await read(story)
        before = story.server.find(CONFIG_MAP, NAMESPACE, name)["metadata"]
        story.server.edit(
            CONFIG_MAP, NAMESPACE, name, {"metadata": {"ownerReferences": None, "labels": None}}
        )

        def is_whole() -> bool:
            found = story.server.find(CONFIG_MAP, NAMESPACE, name)["metadata"]
            return bool(found.get("labels") == before["labels"] and found.get("ownerReferences"))

        await story.until(is_whole, "owner reference and labels")
        await story.adopted(parallelism=2, splits=8)

    played(play)


def test_a_state_without_any_sign_of_its_owner_is_never_silently_dropped() -> None:
    async def play(story: Story) -> None:
        await story.begin()
        await read(story)
        for operator in list(story.operators):
            await operator.stop()
            story.operators.remove(operator)
        stripped = {"metadata": {"ownerReferences": None, "labels": None}}
        before = story.server.edit(CONFIG_MAP, NAMESPACE, "orders-enumerator", stripped)
        story.start_operator(name="operator-2")
        await story.until(lambda: condition(story)["reason"] == "ForeignObject", "a condition")
        assert story.server.find(CONFIG_MAP, NAMESPACE, "orders-enumerator") == before
        story.server.edit(
            CONFIG_MAP, NAMESPACE, "orders-enumerator", {"metadata": {"labels": {UID_LABEL: UID}}}
        )
        await story.until(lambda: condition(story)["status"] == "False", "all is well")
        await story.adopted(parallelism=2, splits=8)
        assert {lineage for lineage, _ in story.seen} == {1}, "the state is the same"

    played(play)


async def without_owner(story: Story) -> None:
    """The application of a source that is read loses its owner reference, and is named."""
    await story.begin()
    await read(story)
    story.server.edit(
        KUBEFLOW_APPLICATION, NAMESPACE, "orders-1", {"metadata": {"ownerReferences": None}}
    )
    await story.until(lambda: condition(story)["reason"] == "OwnerReferenceMissing", "a condition")


def test_an_application_without_an_owner_reference_is_named_and_goes_with_the_source() -> None:
    async def play(story: Story) -> None:
        await without_owner(story)
        story.server.remove(BALANCED_SOURCE, NAMESPACE, "orders")
        await story.until(lambda: story.children() == [], "nothing is left behind")

    played(play)


def test_such_an_application_goes_also_if_that_is_refused_for_a_minute() -> None:
    """No later operator would know of it: its source is gone."""

    async def play(story: Story) -> None:
        await without_owner(story)
        allow = story.server.deny(
            RefusedError("a webhook does not answer", status=500),
            kind=KUBEFLOW_APPLICATION,
            verbs=("delete",),
        )
        story.server.remove(BALANCED_SOURCE, NAMESPACE, "orders")
        await asyncio.sleep(50)
        assert story.applications == ["orders-1"]
        allow()
        await story.until(lambda: story.children() == [], "nothing is left behind")

    played(play)


@pytest.mark.parametrize(
    "edit",
    [
        {"conditions": []},
        {"readers": 99},
        {"message": "all is lost", "epoch": 0},
        None,
    ],
)
def test_an_edited_status_is_repaired(edit: Any) -> None:
    async def play(story: Story) -> None:
        await story.begin()
        await read(story)
        await story.until(lambda: condition(story, "Ready")["status"] == "True", "ready")
        before = story.status
        story.server.edit(BALANCED_SOURCE, NAMESPACE, "orders", {"status": edit})
        await story.until(lambda: story.status == before, "the status as it was")

    played(play)


# --- backup and restore ---------------------------------------------------------------------------

NEW_UID = "uid-restored"


def as_restored(manifest: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    """What a backup tool creates: the same content, another identity."""
    kept = {k: v for k, v in manifest["metadata"].items() if k in ("name", "namespace", "labels")}
    return {**manifest, "metadata": {**kept, **metadata}}


async def restored(
    story: Story, monkeypatch: pytest.MonkeyPatch, *, documents: bool, **metadata: Any
) -> None:
    """The namespace is lost with everything in it.

    A backup restores the source, and perhaps its ConfigMaps.
    """
    source = story.server.find(BALANCED_SOURCE, NAMESPACE, "orders")
    # The stand-in driver does not read the report of another uid; the product's channel ignores it.
    names = ("orders-enumerator", "orders-assignment")
    kept = [story.server.find(CONFIG_MAP, NAMESPACE, name) for name in names]
    for operator in list(story.operators):
        await operator.stop()
        story.operators.remove(operator)
    story.server.remove(BALANCED_SOURCE, NAMESPACE, "orders")
    await story.until(lambda: story.children() == [], "everything is gone")
    story.applications.clear()
    story.seen.clear()
    for module in (cluster_story, world):
        monkeypatch.setattr(module, "UID", NEW_UID)
    story.server.add(BALANCED_SOURCE, as_restored(source, uid=NEW_UID, **metadata))
    for manifest in kept if documents else ():
        story.server.add(CONFIG_MAP, as_restored(manifest))
    story.start_operator(name="operator-2")


def driver_from_checkpoint(story: Story) -> None:
    """The new driver continues from the Spark checkpoint, which is not part of the cluster."""
    before: Driver = story.driver
    # The same by duck typing
    story.driver = Driver(story.documents, story.broker)  # type: ignore[arg-type]
    story.driver.offsets, story.driver.committed = before.offsets, before.committed
    story.driver.delivered = before.delivered


def test_a_source_restored_without_its_config_maps_continues_from_the_checkpoint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def play(story: Story) -> None:
        await story.begin()
        await read(story)
        await restored(story, monkeypatch, documents=False)
        driver_from_checkpoint(story)
        story.broker.ends = dict.fromkeys(story.broker.ends, 9)
        await read(story)

    assert_everything_once(played(play))


def test_a_source_restored_with_its_config_maps_reports_a_remedy_and_continues(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def play(story: Story) -> None:
        await story.begin()
        await read(story)
        lineage, epoch = story.seen[-1][:2]
        await restored(story, monkeypatch, documents=True)
        await story.until(lambda: condition(story)["reason"] == "ForeignObject", "a condition")
        assert FORMER_UID_ANNOTATION in condition(story)["message"]
        annotation = {"metadata": {"annotations": {FORMER_UID_ANNOTATION: UID}}}
        story.server.edit(BALANCED_SOURCE, NAMESPACE, "orders", annotation)
        driver_from_checkpoint(story)
        story.broker.ends = dict.fromkeys(story.broker.ends, 9)
        await read(story)
        assert story.seen[-1][0] == lineage, "the former state was taken over as it was"
        assert story.seen[-1][1] > epoch
        await story.until(lambda: condition(story)["status"] == "False", "all is well")

    assert_everything_once(played(play))


def assert_everything_once(story: Story) -> None:
    delivered = story.driver.delivered
    assert len(delivered) == len(set(delivered)) == sum(story.broker.ends.values())
