import pytest

from testbed.process_node.fields import PodFacts, expand, resource_field

POD = PodFacts(
    document={
        "metadata": {"name": "p", "namespace": "ns", "uid": "u", "labels": {"b": "2", "a": "1"}},
        "spec": {"serviceAccountName": "spark"},
    },
    node="n",
    ip="127.64.0.2",
)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.name", "p"),
        ("metadata.namespace", "ns"),
        ("metadata.uid", "u"),
        ("metadata.labels['a']", "1"),
        ("metadata.labels['none']", ""),
        ("metadata.annotations['none']", ""),
        ("metadata.labels", 'a="1"\nb="2"\n'),
        ("spec.nodeName", "n"),
        ("spec.serviceAccountName", "spark"),
        ("status.podIP", "127.64.0.2"),
        ("status.hostIP", "127.0.0.1"),
    ],
)
def test_a_pod_can_describe_itself(path: str, value: str) -> None:
    assert POD.field(path) == value


def test_an_unknown_field_is_an_error_not_an_empty_value() -> None:
    with pytest.raises(ValueError, match=r"spec\.hostname"):
        POD.field("spec.hostname")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("$(A)/$(B)", "1/2"),
        ("$(NONE) stays", "$(NONE) stays"),
        ("$$(A)", "$(A)"),
        ("$A ${A} $(not a name)", "$A ${A} $(not a name)"),
        ("$(A.x-y)", "3"),
    ],
)
def test_references_are_expanded_as_kubernetes_does(text: str, value: str) -> None:
    assert expand(text, {"A": "1", "B": "2", "A.x-y": "3"}) == value


def test_a_resource_is_described_as_it_is() -> None:
    container = {"resources": {"limits": {"memory": "1Gi"}}}
    assert resource_field(container, {"resource": "limits.memory"}) == "1Gi"
    assert resource_field(container, {"resource": "requests.cpu"}) == "0"
