"""What the operator relies on, at the fake and at a real API server."""

import asyncio
import itertools
from typing import Any

import pytest

from balanced_source_operator.kube.port import (
    ConflictError,
    InvalidNameError,
    KubernetesApi,
    RefusedError,
    UnknownKindError,
)
from balanced_source_operator.resources.kinds import (
    BALANCED_SOURCE,
    CONFIG_MAP,
    POD_TEMPLATE,
    ROLE,
    SECRET,
    ResourceKind,
)
from balanced_source_operator.spec.pod_template import SCHEMA_FILE
from support.builders import spec_json
from support.pod_schema import published, to_text
from testbed.control_plane import ControlPlane

NOWHERE = ResourceKind("nowhere.example.org", "v1", "things", "Thing")


def config_map(
    namespace: str, name: str = "a", *, labels: dict[str, str] | None = None, **data: str
) -> dict[str, Any]:
    metadata = {"namespace": namespace, "name": name, "labels": labels or {}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def source(namespace: str, **changes: Any) -> dict[str, Any]:
    return {
        "apiVersion": BALANCED_SOURCE.api_version,
        "kind": BALANCED_SOURCE.kind,
        "metadata": {"namespace": namespace, "name": "orders"},
        "spec": spec_json(**changes),
    }


def role(namespace: str, *verbs: str, **metadata: Any) -> dict[str, Any]:
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": list(verbs)}
    return {
        "apiVersion": ROLE.api_version,
        "kind": ROLE.kind,
        "metadata": {"namespace": namespace, "name": "r", **metadata},
        "rules": [rule],
    }


async def test_a_missing_object_is_none(api: KubernetesApi, namespace: str) -> None:
    assert await api.get(CONFIG_MAP, namespace, "a") is None


@pytest.mark.parametrize(
    "name",
    ["../{0}/secrets/a", "../../{0}/configmaps/a", "..%2Fa", "a/../b", "a?x=y", "a#b", ".", ""],
)
async def test_a_name_never_reaches_another_object(
    api: KubernetesApi, namespace: str, name: str
) -> None:
    """With its own rights the server would read what the author of the name may not."""
    made = await api.create(CONFIG_MAP, config_map(namespace, x="1"))
    hostile = name.format(namespace)

    with pytest.raises(InvalidNameError, match="not a valid name"):
        await api.get(SECRET, namespace, hostile)
    with pytest.raises(InvalidNameError, match="not a valid name"):
        await api.get(CONFIG_MAP, hostile, "a")
    with pytest.raises(InvalidNameError, match="not a valid name"):
        await api.delete(CONFIG_MAP, namespace, hostile, uid=made["metadata"]["uid"])
    with pytest.raises(InvalidNameError, match="not a valid name"):
        await api.list(CONFIG_MAP, hostile, selector="")
    for write in (api.create, api.replace, api.apply):
        with pytest.raises(InvalidNameError, match="not a valid name"):
            await write(CONFIG_MAP, config_map(hostile))
    for write in (api.replace, api.apply):
        with pytest.raises(InvalidNameError, match="not a valid name"):
            await write(CONFIG_MAP, config_map(namespace, hostile))
    with pytest.raises(InvalidNameError, match="not a valid name"):
        await api.patch_status(BALANCED_SOURCE, namespace, hostile, {"epoch": 1})
    assert await api.get(CONFIG_MAP, namespace, "a") == made


async def test_a_kind_that_is_not_installed_is_distinguished_from_a_broken_one(
    api: KubernetesApi, namespace: str
) -> None:
    with pytest.raises(UnknownKindError):
        await api.get(NOWHERE, namespace, "a")
    with pytest.raises(UnknownKindError):
        await api.list(NOWHERE, namespace, selector="")


async def test_a_created_object_has_a_uid_and_a_revision(
    api: KubernetesApi, namespace: str
) -> None:
    made = await api.create(CONFIG_MAP, config_map(namespace, x="1"))

    assert made["metadata"]["uid"]
    assert made["metadata"]["resourceVersion"].isdigit()
    assert made["metadata"]["creationTimestamp"].endswith("Z")
    found = await api.get(CONFIG_MAP, namespace, "a")
    assert found is not None
    assert found["metadata"]["uid"] == made["metadata"]["uid"]
    assert found["data"] == {"x": "1"}


async def test_an_existing_object_cannot_be_created(api: KubernetesApi, namespace: str) -> None:
    await api.create(CONFIG_MAP, config_map(namespace, x="1"))

    with pytest.raises(ConflictError):
        await api.create(CONFIG_MAP, config_map(namespace, x="2"))

    found = await api.get(CONFIG_MAP, namespace, "a")
    assert found is not None
    assert found["data"] == {"x": "1"}


async def test_lists_select_by_labels_and_name_their_kind(
    api: KubernetesApi, namespace: str
) -> None:
    await api.create(CONFIG_MAP, config_map(namespace, "a", labels={"app": "x", "tier": "1"}))
    await api.create(CONFIG_MAP, config_map(namespace, "b", labels={"app": "x", "tier": "2"}))
    await api.create(CONFIG_MAP, config_map(namespace, "c"))

    async def names(selector: str) -> set[str]:
        return {
            item["metadata"]["name"]
            for item in await api.list(CONFIG_MAP, namespace, selector=selector)
        }

    assert await names("app=x") == {"a", "b"}
    assert await names("app=x,tier=2") == {"b"}
    assert await names("app=y") == set()
    kinds = {
        (i["apiVersion"], i["kind"])
        for i in await api.list(CONFIG_MAP, namespace, selector="app=x")
    }
    assert kinds == {("v1", "ConfigMap")}


async def test_compare_and_swap(api: KubernetesApi, namespace: str) -> None:
    made = await api.create(CONFIG_MAP, config_map(namespace, x="1"))
    second = await api.replace(CONFIG_MAP, {**made, "data": {"x": "2"}})

    with pytest.raises(ConflictError):
        await api.replace(CONFIG_MAP, {**made, "data": {"x": "3"}})

    found = await api.get(CONFIG_MAP, namespace, "a")
    assert found is not None
    assert found["data"] == {"x": "2"}
    assert found["metadata"]["resourceVersion"] == second["metadata"]["resourceVersion"]
    assert int(second["metadata"]["resourceVersion"]) > int(made["metadata"]["resourceVersion"])


async def test_a_replacement_that_changes_nothing_keeps_the_revision(
    api: KubernetesApi, namespace: str
) -> None:
    made = await api.create(CONFIG_MAP, config_map(namespace, x="1"))

    again = await api.replace(CONFIG_MAP, made)

    assert again["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


async def test_a_deleted_object_cannot_be_replaced(api: KubernetesApi, namespace: str) -> None:
    made = await api.create(CONFIG_MAP, config_map(namespace))
    await api.delete(CONFIG_MAP, namespace, "a", uid=made["metadata"]["uid"])

    with pytest.raises(ConflictError):
        await api.replace(CONFIG_MAP, made)


async def test_apply_creates_fields_and_gives_up_those_it_no_longer_names(
    api: KubernetesApi, namespace: str
) -> None:
    await api.apply(ROLE, role(namespace, "get", "list", labels={"mine": "1", "old": "1"}))

    made = await api.apply(ROLE, role(namespace, "get", labels={"mine": "2"}))

    assert made["rules"][0]["verbs"] == ["get"]
    assert made["metadata"]["labels"] == {"mine": "2"}


async def test_apply_leaves_fields_of_other_managers(api: KubernetesApi, namespace: str) -> None:
    made = await api.create(ROLE, role(namespace, "list", labels={"theirs": "1"}))

    again = await api.apply(ROLE, role(namespace, "get", labels={"mine": "1"}))

    assert again["metadata"]["uid"] == made["metadata"]["uid"]
    assert again["metadata"]["labels"] == {"theirs": "1", "mine": "1"}
    assert again["rules"][0]["verbs"] == ["get"]


async def test_to_apply_the_same_again_changes_nothing(api: KubernetesApi, namespace: str) -> None:
    first = await api.apply(ROLE, role(namespace, "get"))

    second = await api.apply(ROLE, role(namespace, "get"))

    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


async def test_the_status_is_merged_and_nothing_else(api: KubernetesApi, namespace: str) -> None:
    made = await api.create(BALANCED_SOURCE, source(namespace))

    first = await api.patch_status(BALANCED_SOURCE, namespace, "orders", {"epoch": 3, "readers": 2})
    assert first is not None
    assert first["status"]["epoch"] == 3
    assert int(first["metadata"]["resourceVersion"]) > int(made["metadata"]["resourceVersion"])
    await api.patch_status(BALANCED_SOURCE, namespace, "orders", {"readers": 4})

    found = await api.get(BALANCED_SOURCE, namespace, "orders")
    assert found is not None
    assert {k: found["status"][k] for k in ("epoch", "readers")} == {"epoch": 3, "readers": 4}
    assert found["spec"] == made["spec"]
    assert found["metadata"]["generation"] == 1


async def test_a_replacement_of_the_spec_leaves_the_status(
    api: KubernetesApi, namespace: str
) -> None:
    await api.create(BALANCED_SOURCE, source(namespace))
    await api.patch_status(BALANCED_SOURCE, namespace, "orders", {"epoch": 3})
    found = await api.get(BALANCED_SOURCE, namespace, "orders")
    assert found is not None

    spec = {**found["spec"], "parallelism": 7}
    again = await api.replace(BALANCED_SOURCE, {**found, "spec": spec, "status": {"epoch": 9}})

    assert again["spec"]["parallelism"] == 7
    assert again["status"]["epoch"] == 3
    assert again["metadata"]["generation"] == 2


async def test_scaling_changes_replicas_only_from_the_number_that_was_seen(
    api: KubernetesApi, namespace: str
) -> None:
    made = await api.create(BALANCED_SOURCE, source(namespace))
    before = int(made["spec"]["parallelism"])

    await api.scale(BALANCED_SOURCE, namespace, "orders", before=before, after=before + 3)
    with pytest.raises(ConflictError, match=f"not {before} any more"):
        await api.scale(BALANCED_SOURCE, namespace, "orders", before=before, after=1)

    found = await api.get(BALANCED_SOURCE, namespace, "orders")
    assert found is not None
    assert found["spec"] == {**made["spec"], "parallelism": before + 3}
    assert found["metadata"]["generation"] == 2


async def test_scaling_a_deleted_source_is_rejected(api: KubernetesApi, namespace: str) -> None:
    with pytest.raises(RefusedError) as refused:
        await api.scale(BALANCED_SOURCE, namespace, "orders", before=1, after=2)
    assert refused.value.status == 404


async def test_a_status_for_what_is_gone_is_not_an_error(
    api: KubernetesApi, namespace: str
) -> None:
    assert await api.patch_status(BALANCED_SOURCE, namespace, "orders", {"epoch": 3}) is None


async def test_a_refusal_has_the_status_and_the_words_of_the_server(
    api: KubernetesApi, namespace: str
) -> None:
    """The client checks names itself, so the server has to object to something else."""
    refused = config_map(namespace) | {"data": {"bad/key": ""}}

    with pytest.raises(
        RefusedError, match=r'ConfigMap "a" is invalid: data\[bad/key\]: Invalid value'
    ) as raised:
        await api.create(CONFIG_MAP, refused)

    assert raised.value.status == 422


async def test_only_this_very_object_is_deleted(api: KubernetesApi, namespace: str) -> None:
    made = await api.create(CONFIG_MAP, config_map(namespace))

    await api.delete(CONFIG_MAP, namespace, "a", uid="00000000-0000-0000-0000-000000000000")
    assert await api.get(CONFIG_MAP, namespace, "a") is not None

    for _ in range(2):
        await api.delete(CONFIG_MAP, namespace, "a", uid=made["metadata"]["uid"])
        assert await api.get(CONFIG_MAP, namespace, "a") is None


async def test_children_go_with_their_owner(api: KubernetesApi, namespace: str) -> None:
    owner = await api.create(CONFIG_MAP, config_map(namespace, "owner"))
    child = config_map(namespace, "child")
    child["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    ]
    await api.create(CONFIG_MAP, child)

    await api.delete(CONFIG_MAP, namespace, "owner", uid=owner["metadata"]["uid"])

    await gone(api, namespace, "child")


async def test_children_of_an_owner_that_is_gone_already_go_as_well(
    api: KubernetesApi, namespace: str
) -> None:
    """Whoever writes a child although its owner was deleted leaves nothing behind."""
    owner = await api.create(CONFIG_MAP, config_map(namespace, "owner"))
    await api.delete(CONFIG_MAP, namespace, "owner", uid=owner["metadata"]["uid"])
    child = config_map(namespace, "child")
    child["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    ]

    await api.create(CONFIG_MAP, child)

    await gone(api, namespace, "child")


async def gone(api: KubernetesApi, namespace: str, name: str) -> None:
    """Wait until the garbage collector has done its work."""
    async with asyncio.timeout(30):
        for pause in itertools.repeat(0.05):
            if await api.get(CONFIG_MAP, namespace, name) is None:
                break
            await asyncio.sleep(pause)


def pod_template(namespace: str, **container: Any) -> dict[str, Any]:
    spec = {"containers": [{"name": "a", "image": "i", **container}]}
    return {
        "apiVersion": POD_TEMPLATE.api_version,
        "kind": POD_TEMPLATE.kind,
        "metadata": {"namespace": namespace, "name": "a"},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": spec},
    }


async def test_a_dry_run_creates_nothing(api: KubernetesApi, namespace: str) -> None:
    assert await api.objection(POD_TEMPLATE, pod_template(namespace)) is None

    assert await api.get(POD_TEMPLATE, namespace, "a") is None


@pytest.mark.integration
@pytest.mark.parametrize("which", ["real"], indirect=True)
@pytest.mark.parametrize(
    ("container", "says"),
    [
        (
            {"resources": {"requests": {"cpu": "lots"}}},
            "quantities must match the regular expression",
        ),
        ({"resources": {"requests": {"cpu": "-1"}}}, "must be greater than or equal to 0"),
        ({"env": [{"value": "1"}]}, "env[0].name: Required value"),
        ({"resourcez": {}}, 'unknown field "template.spec.containers[0].resourcez"'),
    ],
)
async def test_a_dry_run_reports_a_rejection(
    api: KubernetesApi, namespace: str, container: dict[str, Any], says: str
) -> None:
    told = await api.objection(POD_TEMPLATE, pod_template(namespace, **container))

    assert told is not None
    assert says in told


@pytest.mark.integration
def test_the_schema_of_pod_templates_is_what_the_server_publishes(
    control_plane: ControlPlane,
) -> None:
    assert SCHEMA_FILE.read_text() == to_text(published(control_plane)), (
        "run `python -m support.pod_schema`"
    )
