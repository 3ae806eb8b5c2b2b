"""What a replica that does not serve says to those who open its page."""

from balanced_source_operator.page.beside import standby


def test_the_lease_is_named_with_its_namespace() -> None:
    assert "kubectl get lease balanced-source-operator -n streaming -o jsonpath" in standby(
        "streaming"
    )
