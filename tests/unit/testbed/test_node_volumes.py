import base64
import time
from pathlib import Path
from typing import Any

import pytest

from testbed.process_node.atomic import FileContent, write_payload
from testbed.process_node.environment import container_environment
from testbed.process_node.fields import PodFacts
from testbed.process_node.objects import MissingObjectError, Objects, UnsupportedError
from testbed.process_node.volumes import Volumes, shown_objects

CONFIG_MAP = "/api/v1/namespaces/ns/configmaps/cm"
SECRET = "/api/v1/namespaces/ns/secrets/s"  # noqa: S105 - an address


class FakeApi:
    """Objects by their address; every token is a new one."""

    def __init__(self, **data: dict[str, str]) -> None:
        encoded = {
            key: base64.b64encode(value.encode()).decode()
            for key, value in data.get("secret", {}).items()
        }
        self.objects: dict[str, Any] = {
            CONFIG_MAP: {"data": data.get("config_map", {"a": "1"})},
            SECRET: {"data": encoded},
        }
        self.tokens = 0

    async def find(self, path: str) -> dict[str, Any] | None:
        return self.objects.get(path)

    async def request(self, _method: str, _path: str, _body: object) -> dict[str, Any]:
        self.tokens += 1
        return {"status": {"token": f"token-{self.tokens}"}}


def facts(*volumes: dict[str, Any]) -> PodFacts:
    metadata = {"name": "p", "namespace": "ns", "uid": "u"}
    return PodFacts(
        document={"metadata": metadata, "spec": {"volumes": list(volumes)}}, node="n", ip="ip"
    )


def volumes(tmp_path: Path, api: FakeApi, *specs: dict[str, Any]) -> Volumes:
    return Volumes(
        pod=facts(*specs),
        objects=Objects(api, "ns"),
        folder=tmp_path / "volumes",
        claims=tmp_path / "claims",
    )


def content(folder: Path) -> dict[str, str]:
    return {
        path.name: path.read_text() for path in folder.iterdir() if not path.name.startswith("..")
    }


async def test_a_changed_config_map_reaches_its_volume_in_one_step(tmp_path: Path) -> None:
    api = FakeApi(config_map={"a": "1", "b": "1"})
    mounted = volumes(tmp_path, api, {"name": "v", "configMap": {"name": "cm"}})
    await mounted.prepare()
    folder = tmp_path / "volumes" / "v"
    before = (folder / "..data").readlink()
    assert content(folder) == {"a": "1", "b": "1"}
    assert await mounted.refresh("configmaps", "cm") == []
    assert (folder / "..data").readlink() == before

    api.objects[CONFIG_MAP] = {"data": {"a": "2", "c": "2"}}
    assert await mounted.refresh("configmaps", "cm") == ["v"]
    assert content(folder) == {"a": "2", "c": "2"}
    assert (folder / "a").readlink() == Path("..data/a")
    assert sorted(
        path.name for path in folder.iterdir() if path.is_dir() and not path.is_symlink()
    ) == [str((folder / "..data").readlink())]


async def test_other_objects_do_not_touch_a_volume(tmp_path: Path) -> None:
    api = FakeApi()
    mounted = volumes(tmp_path, api, {"name": "v", "configMap": {"name": "cm"}})
    await mounted.prepare()
    api.objects[CONFIG_MAP] = {"data": {"a": "2"}}
    assert await mounted.refresh("secrets", "cm") == []
    assert await mounted.refresh("configmaps", "other") == []


async def test_items_modes_and_binary_data(tmp_path: Path) -> None:
    api = FakeApi()
    api.objects[CONFIG_MAP] = {
        "data": {"a": "1"},
        "binaryData": {"b": base64.b64encode(b"\x00").decode()},
    }
    items = [{"key": "b", "path": "deep/b", "mode": 0o400}]
    spec = {"name": "v", "configMap": {"name": "cm", "items": items}}
    await volumes(tmp_path, api, spec).prepare()
    file = tmp_path / "volumes" / "v" / "deep" / "b"
    assert file.read_bytes() == b"\x00"
    assert file.stat().st_mode & 0o777 == 0o400


async def test_missing_volumes_are_waited_for_unless_optional(tmp_path: Path) -> None:
    api = FakeApi()
    with pytest.raises(MissingObjectError, match='configmaps "none" not found'):
        await volumes(tmp_path, api, {"name": "v", "configMap": {"name": "none"}}).prepare()
    reference = {"name": "cm", "items": [{"key": "x", "path": "x"}]}
    with pytest.raises(MissingObjectError, match="no such keys: x"):
        await volumes(tmp_path, api, {"name": "v", "configMap": reference}).prepare()
    optional = {"name": "none", "optional": True}
    await volumes(tmp_path, api, {"name": "w", "configMap": optional}).prepare()
    assert content(tmp_path / "volumes" / "w") == {}


async def test_a_projected_volume_gathers_its_sources_and_renews_its_token(tmp_path: Path) -> None:
    api = FakeApi(secret={"s": "hidden"})
    sources = [
        {"serviceAccountToken": {"path": "token", "expirationSeconds": 100}},
        {"configMap": {"name": "cm"}},
        {"secret": {"name": "s"}},
        {
            "downwardAPI": {
                "items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]
            }
        },
    ]
    mounted = volumes(tmp_path, api, {"name": "v", "projected": {"sources": sources}})
    await mounted.prepare()
    folder = tmp_path / "volumes" / "v"
    assert content(folder) == {"token": "token-1", "a": "1", "s": "hidden", "namespace": "ns"}
    assert mounted.renew_at is not None
    assert 70 < mounted.renew_at - time.monotonic() <= 80
    await mounted.refresh()
    assert content(folder)["token"] == "token-2"  # noqa: S105


async def test_mounts_lead_to_the_host(tmp_path: Path) -> None:
    claim = {"claimName": "checkpoints"}
    api = FakeApi()
    api.objects["/api/v1/namespaces/ns/persistentvolumeclaims/checkpoints"] = {}
    mounted = volumes(
        tmp_path,
        api,
        {"name": "e", "emptyDir": {}},
        {"name": "h", "hostPath": {"path": str(tmp_path)}},
        {"name": "c", "persistentVolumeClaim": claim},
    )
    await mounted.prepare()
    mounts = [
        {"name": "e", "mountPath": "/e/"},
        {"name": "h", "mountPath": "/h"},
        {"name": "c", "mountPath": "/c", "subPath": "one"},
    ]
    assert mounted.mounts({"volumeMounts": mounts}) == {
        "/e": str(tmp_path / "volumes" / "e"),
        "/h": str(tmp_path),
        "/c": str(tmp_path / "claims" / "ns" / "checkpoints" / "one"),
    }


async def test_a_kind_of_volume_that_is_not_supported_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="nfs"):
        await volumes(tmp_path, FakeApi(), {"name": "v", "nfs": {"server": "s"}}).prepare()


def test_the_shown_objects_of_a_volume() -> None:
    sources = [{"configMap": {"name": "a"}}, {"secret": {"name": "b"}}]
    assert shown_objects({"name": "v", "projected": {"sources": sources}}) == {
        ("configmaps", "a"),
        ("secrets", "b"),
    }
    assert shown_objects({"name": "v", "secret": {"secretName": "c"}}) == {("secrets", "c")}
    assert shown_objects({"name": "v", "emptyDir": {}}) == set()


def test_an_equal_payload_is_not_written_again(tmp_path: Path) -> None:
    payload = {"a": FileContent(b"1"), "x/y": FileContent(b"2", 0o600)}
    assert write_payload(tmp_path, payload)
    assert not write_payload(tmp_path, payload)
    assert write_payload(tmp_path, payload | {"a": FileContent(b"1", 0o600)})


async def test_the_environment_has_references_fields_and_the_last_word_last() -> None:
    api = FakeApi(config_map={"a": "1", "b": "2"}, secret={"key": "hidden"})
    container = {
        "envFrom": [{"prefix": "X_", "configMapRef": {"name": "cm"}}, {"secretRef": {"name": "s"}}],
        "env": [
            {"name": "X_a", "value": "own"},
            {"name": "BOTH", "value": "$(X_a)-$(X_b)"},
            {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "KEY", "valueFrom": {"configMapKeyRef": {"name": "cm", "key": "b"}}},
            {"name": "HIDDEN", "valueFrom": {"secretKeyRef": {"name": "s", "key": "key"}}},
            {
                "name": "NONE",
                "valueFrom": {"secretKeyRef": {"name": "s", "key": "no", "optional": True}},
            },
            {"name": "EMPTY"},
        ],
    }
    assert await container_environment(container, facts(), Objects(api, "ns")) == {
        "X_a": "own",
        "X_b": "2",
        "key": "hidden",
        "BOTH": "own-2",
        "NAME": "p",
        "KEY": "2",
        "HIDDEN": "hidden",
        "EMPTY": "",
    }


async def test_a_missing_key_is_waited_for() -> None:
    reference = {"name": "cm", "key": "none"}
    container = {"env": [{"name": "A", "valueFrom": {"configMapKeyRef": reference}}]}
    with pytest.raises(MissingObjectError, match="cm has no key none"):
        await container_environment(container, facts(), Objects(FakeApi(), "ns"))
