"""Scenarios run with one host for all readers, as shipped, and a host per reader, as in Flink."""

import pytest

from support.stage import Stage

ONE_HOST, HOST_PER_READER = "one host", "a host per reader"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "Stage" not in vars(metafunc.module):
        return
    is_apart = metafunc.definition.get_closest_marker("hosts_apart") is not None
    topologies = [HOST_PER_READER] if is_apart else [ONE_HOST, HOST_PER_READER]
    metafunc.parametrize("topology", topologies, indirect=True)


@pytest.fixture(autouse=True)
def topology(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The topology of each stage that does not say how many hosts it has."""
    name = getattr(request, "param", ONE_HOST)
    monkeypatch.setattr(Stage, "has_host_per_reader", name == HOST_PER_READER)
    return str(name)
