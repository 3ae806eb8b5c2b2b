"""What owner policies are called where they are stored."""

import json

import pytest

from balanced_source.assigners import (
    STRATEGIES,
    AssignerIdentity,
    HashAssigner,
    LoadAwareAssigner,
    PerScopeAssigner,
    RoundRobinAssigner,
    SplitAssigner,
    former_identity,
)

POLICIES: list[SplitAssigner] = [
    RoundRobinAssigner(),
    HashAssigner(),
    LoadAwareAssigner(),
    LoadAwareAssigner(tolerance=0.5),
    PerScopeAssigner(HashAssigner()),
    PerScopeAssigner(LoadAwareAssigner(tolerance=0.5)),
]


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_policy_is_stored_by_the_name_that_users_write(name: str) -> None:
    """Without parameters.

    What a user could not choose may get a better default without moving splits.
    """
    assert STRATEGIES[name]().identity == AssignerIdentity(name=name)


def test_policies_that_differ_have_other_identities() -> None:
    stored = {json.dumps(policy.identity.to_json()) for policy in POLICIES}

    assert len(stored) == len(POLICIES)


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_an_identity_survives_storage(policy: SplitAssigner) -> None:
    stored = json.loads(json.dumps(policy.identity.to_json()))

    assert AssignerIdentity.from_json(stored) == policy.identity


def test_a_policy_within_another_one_is_part_of_its_identity() -> None:
    assert PerScopeAssigner(LoadAwareAssigner(aversion=0.5)).identity.to_json() == {
        "name": "PerScope",
        "parameters": {"inner": {"name": "LoadAware", "parameters": {"aversion": 0.5}}},
    }


def test_a_policy_of_no_release_is_unknown() -> None:
    """Nothing moves because of it: a user may have chosen the present policy already."""
    assert former_identity("OneOwner(owner=3)") is None


def test_scopes_are_balanced_one_by_one_and_pass_on_what_the_inner_policy_warns_of() -> None:
    warning = PerScopeAssigner(HashAssigner()).warning(31)

    assert warning is not None
    assert warning.reason == "HashCollapses"
    assert PerScopeAssigner(RoundRobinAssigner()).warning(31) is None
