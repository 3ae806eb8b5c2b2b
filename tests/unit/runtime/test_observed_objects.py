"""What is known of a source and its children, as watches and lists deliver it in any order."""

from typing import Any

import pytest

from balanced_source_operator.resources.kinds import (
    APACHE_APPLICATION,
    BALANCED_SOURCE,
    CONFIG_MAP,
    KUBEFLOW_APPLICATION,
    POD,
)
from balanced_source_operator.runtime.observed import Observed
from support.builders import UID, identity, source_body
from support.fake_kubernetes import FakeKubernetes

NAME = "orders-readers"


def child(*, uid: str = "first", revision: object = 5, owner: str = UID) -> dict[str, Any]:
    metadata = {"name": NAME, "namespace": "default", "uid": uid, "resourceVersion": str(revision)}
    return {"metadata": metadata | {"ownerReferences": [{"uid": owner}]}}


@pytest.fixture
def observed() -> Observed:
    return Observed(source_body(revision=5))


def uid_of(observed: Observed) -> str | None:
    found = observed.get(CONFIG_MAP, NAME)
    return None if found is None else str(found["metadata"]["uid"])


@pytest.mark.parametrize(("revision", "is_known"), [(4, False), (5, True), (6, True)])
def test_an_older_version_of_a_child_is_ignored(
    observed: Observed, revision: int, *, is_known: bool
) -> None:
    observed.note(CONFIG_MAP, "ADDED", child())
    newer = child(revision=revision)
    observed.note(CONFIG_MAP, "MODIFIED", newer)

    assert (observed.get(CONFIG_MAP, NAME) is newer) == is_known


@pytest.mark.parametrize(("revision", "is_known"), [(4, False), (5, True), (6, True)])
def test_an_older_version_of_the_source_is_ignored(
    observed: Observed, revision: int, *, is_known: bool
) -> None:
    observed.note(BALANCED_SOURCE, "MODIFIED", source_body(revision=revision, generation=9))

    assert (observed.generation == 9) == is_known


def test_a_child_that_was_made_again_counts_whatever_its_version(observed: Observed) -> None:
    observed.note(CONFIG_MAP, "ADDED", child())
    observed.note(CONFIG_MAP, "ADDED", child(uid="second", revision="not a number"))

    assert uid_of(observed) == "second"


def test_a_version_that_is_no_number_is_older_than_any(observed: Observed) -> None:
    known = child(revision=1)
    observed.note(CONFIG_MAP, "ADDED", known)
    observed.note(CONFIG_MAP, "MODIFIED", child(revision="not a number"))

    assert observed.get(CONFIG_MAP, NAME) is known


def test_a_child_is_gone_when_it_is_deleted_and_not_when_its_predecessor_was(
    observed: Observed,
) -> None:
    observed.note(CONFIG_MAP, "DELETED", child())
    observed.note(CONFIG_MAP, "ADDED", child(uid="second"))
    observed.note(CONFIG_MAP, "DELETED", child(uid="first"))
    assert uid_of(observed) == "second"

    observed.note(CONFIG_MAP, "DELETED", child(uid="second"))
    assert uid_of(observed) is None


def test_objects_of_other_owners_are_ignored_but_own_ones_that_lose_their_owner_are_not(
    observed: Observed,
) -> None:
    observed.note(CONFIG_MAP, "ADDED", child(owner="another source"))
    assert uid_of(observed) is None

    observed.note(CONFIG_MAP, "ADDED", child())
    lost = child(revision=6, owner="nobody")
    observed.note(CONFIG_MAP, "MODIFIED", lost)
    assert observed.get(CONFIG_MAP, NAME) is lost
    observed.note(CONFIG_MAP, "ADDED", child(uid="second", owner="another source"))
    assert observed.get(CONFIG_MAP, NAME) is lost


def test_pods_belong_to_their_application(observed: Observed) -> None:
    observed.note(POD, "ADDED", child(owner="an application"))

    assert len(observed.all(POD)) == 1


@pytest.mark.parametrize("event", ["DELETED", "MODIFIED"])
def test_a_source_that_is_deleted_is_gone(observed: Observed, event: str) -> None:
    body = source_body(revision=6)
    if event == "MODIFIED":
        body["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    observed.note(BALANCED_SOURCE, "MODIFIED", source_body(revision=6))
    assert not observed.is_deleted

    observed.note(BALANCED_SOURCE, event, body)
    assert observed.is_deleted


def test_a_source_without_a_generation_has_had_no_change() -> None:
    body = source_body()
    del body["metadata"]["generation"]

    assert Observed(body).generation == 0


@pytest.fixture
def server() -> FakeKubernetes:
    return FakeKubernetes()


def stored(server: FakeKubernetes) -> Observed:
    """A source that the API server has, with one ConfigMap."""
    made = server.add(BALANCED_SOURCE, source_body())
    server.add(CONFIG_MAP, {"metadata": identity().metadata(NAME)})
    return Observed(made)


@pytest.mark.asyncio
async def test_a_refresh_finds_new_objects_and_drops_deleted_ones(server: FakeKubernetes) -> None:
    observed = stored(server)
    observed.note(CONFIG_MAP, "ADDED", {"metadata": identity().metadata("gone") | {"uid": "a"}})
    foreign = identity().metadata("foreign") | {"ownerReferences": []}
    foreign["labels"] = {**foreign["labels"], "balancedsource.io/uid": "another source"}
    server.add(CONFIG_MAP, {"metadata": foreign})
    pod = identity().metadata("orders-1-driver") | {"ownerReferences": []}
    server.add(POD, {"metadata": {**pod, "labels": identity().pod_labels}})
    server.edit(BALANCED_SOURCE, "default", "orders", {"spec": {"parallelism": 9}})

    await observed.refresh(server.client())

    assert [found["metadata"]["name"] for found in observed.all(CONFIG_MAP)] == [NAME]
    assert len(observed.all(POD)) == 1
    assert observed.body["spec"]["parallelism"] == 9
    assert not observed.is_deleted


@pytest.mark.asyncio
async def test_a_spark_operator_may_be_installed_later(server: FakeKubernetes) -> None:
    observed = stored(server)
    await observed.refresh(server.client())
    assert APACHE_APPLICATION in observed.unknown
    assert KUBEFLOW_APPLICATION not in observed.unknown

    server.kinds = [APACHE_APPLICATION, *server.kinds]
    await observed.refresh(server.client())
    assert observed.unknown == set()


@pytest.mark.asyncio
@pytest.mark.parametrize("is_made_again", [False, True])
async def test_a_source_that_the_api_server_does_not_have_any_more_is_gone(
    server: FakeKubernetes, *, is_made_again: bool
) -> None:
    observed = stored(server)
    server.remove(BALANCED_SOURCE, "default", "orders")
    if is_made_again:
        body = source_body()
        body["metadata"]["uid"] = "another source"
        server.add(BALANCED_SOURCE, body)

    await observed.refresh(server.client())

    assert observed.is_deleted


@pytest.mark.asyncio
async def test_applications_of_hosts_follow_what_is_seen_and_listed() -> None:
    """A turn asks often, and is given what it was given before only while nothing has changed."""
    server = FakeKubernetes()
    server.add(BALANCED_SOURCE, source_body(revision=5))
    observed = Observed(source_body(revision=5))

    def application(name: str) -> dict[str, Any]:
        found = child(uid=name)
        found["metadata"] |= {"name": name, "labels": identity().labels}
        return found

    def names() -> list[str]:
        return [one["metadata"]["name"] for one in observed.by_host.get("0", ())]

    assert names() == []
    observed.note(KUBEFLOW_APPLICATION, "ADDED", application("orders-1"))
    assert names() == ["orders-1"]
    observed.note(KUBEFLOW_APPLICATION, "ADDED", application("orders-2"))
    assert names() == ["orders-1", "orders-2"]
    observed.note(KUBEFLOW_APPLICATION, "DELETED", application("orders-1"))
    assert names() == ["orders-2"]

    server.add(KUBEFLOW_APPLICATION, application("orders-3"))
    await observed.refresh(server.client())
    assert names() == ["orders-3"]
