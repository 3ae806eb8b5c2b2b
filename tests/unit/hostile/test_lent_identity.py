"""The operator uses a source's properties in its own pod: none of them may use what only that pod has."""

import base64

import pytest

from balanced_source.connectors.kafka.properties import LENDING, RESERVED
from balanced_source.errors import InvalidSpecError
from balanced_source_adapters.kafka.connector import OwnSecrets
from balanced_source_operator.controller.translate import to_source
from balanced_source_operator.resources.kinds import SECRET
from balanced_source_operator.runtime.secrets import SecretCache
from support.builders import make_spec
from support.fake_kubernetes import FakeKubernetes


@pytest.mark.parametrize("name", [*LENDING, "sasl.kerberos.kinit.cmd", "ssl.engine.location", "ssl.providers"])
def test_no_spec_uses_files_commands_or_the_identity_of_the_operator(name: str) -> None:
    cluster = {"name": "main", "bootstrapServers": "b:1", "properties": {name: "x"}}
    spec = make_spec(source={"kafka": {"clusters": [cluster], "subscription": {"topics": ["a"]}}})

    with pytest.raises(InvalidSpecError, match=name):
        to_source(spec)
    assert name in {**LENDING, **RESERVED}


@pytest.mark.parametrize("name", LENDING)
async def test_nor_does_a_secret(name: str) -> None:
    server = FakeKubernetes()
    data = {name: base64.b64encode(b"/var/run/secrets/token").decode()}
    server.add(SECRET, {"metadata": {"namespace": "default", "name": "kafka"}, "data": data})
    cache = SecretCache(server.client(), "default")
    await cache.load(["kafka"])

    with pytest.raises(InvalidSpecError, match=f"Secret kafka: property {name} is not allowed here") as caught:
        OwnSecrets(cache).read("kafka")
    assert "/var/run" not in str(caught.value)
