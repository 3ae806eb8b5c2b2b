"""Properties that the client library refuses: said at once, and without their values."""

import traceback

import pytest

from balanced_source.errors import RefusedDiscoveryError
from balanced_source_adapters.kafka.client import ClusterClient


def test_a_client_that_cannot_be_made_says_why_and_never_what_a_property_holds() -> None:
    """A secret in the wrong place: the library quotes it, and tracebacks show what was raised."""
    config = {"bootstrap.servers": "b:1", "security.protocol": "hunter2"}

    with pytest.raises(RefusedDiscoveryError) as caught:
        ClusterClient("c", config)

    assert str(caught.value).startswith(
        'cluster c: Invalid value for configuration property "security.protocol": check'
    )
    assert caught.value.reason == "InvalidProperties"
    assert "hunter2" not in "".join(traceback.format_exception(caught.value))
