"""Objects that have a name that the operator needs, and belong to someone else."""

from typing import Any

import pytest

from balanced_source_operator.resources.kinds import CONFIG_MAP, NAME_LABEL, UID_LABEL
from balanced_source_operator.runtime.ownership import ForeignObjectError, checked
from support.builders import UID, identity


def manifest(*, owner: dict[str, str] | None = None, **labels: str) -> dict[str, Any]:
    owners = [] if owner is None else [owner]
    return {"metadata": {"name": "orders-readers", "ownerReferences": owners, "labels": labels}}


def refusal(found: dict[str, Any]) -> ForeignObjectError:
    with pytest.raises(ForeignObjectError) as caught:
        checked(identity(), CONFIG_MAP, found)
    assert caught.value.scope == "ConfigMap/orders-readers"
    return caught.value


@pytest.mark.parametrize("found", [manifest(owner={"uid": UID}), manifest(**{UID_LABEL: UID})])
def test_an_owner_reference_or_a_label_is_enough(found: dict[str, Any]) -> None:
    assert checked(identity(), CONFIG_MAP, found) is found


def test_an_object_of_a_former_source_passes_if_the_garbage_collector_deletes_it() -> None:
    owner = {"kind": "BalancedSource", "name": "orders", "uid": "former"}
    error = refusal(manifest(owner=owner))

    assert error.is_passing
    assert "belongs to a former BalancedSource orders with the uid former" in str(error)


def test_an_object_of_a_former_source_without_an_owner_stays() -> None:
    error = refusal(manifest(**{NAME_LABEL: "orders", UID_LABEL: "former"}))

    assert not error.is_passing
    assert "belongs to a former BalancedSource orders" in str(error)


def test_an_object_of_another_owner_stays() -> None:
    error = refusal(manifest(owner={"kind": "Deployment", "name": "shop", "uid": "theirs"}))

    assert not error.is_passing
    assert "exists and does not belong to BalancedSource orders" in str(error)
