"""Credentials of an object store come from the Secret that the source names."""

import sys
from collections.abc import Mapping

import pytest

from balanced_source.connectors.files.settings import Store
from balanced_source.errors import RefusedDiscoveryError
from balanced_source_adapters.files.stores import LocalStore, credentials_of, store_of

KEYS = {"accessKeyId": "AKIA", "secretAccessKey": "hidden-value"}


class Secrets:
    """One Secret, or none."""

    def __init__(self, given: Mapping[str, str] | None) -> None:
        self._given = given

    def read(self, name: str) -> Mapping[str, str]:
        if self._given is None:
            raise LookupError(name)
        return self._given


def test_without_a_secret_the_client_finds_credentials_by_itself() -> None:
    assert credentials_of(None, Secrets(None)) == {}


@pytest.mark.parametrize(
    ("more", "token"), [({}, {}), ({"sessionToken": "t"}, {"session_token": "t"})]
)
def test_the_keys_of_the_secret_get_the_names_of_the_client(
    more: dict[str, str], token: dict[str, str]
) -> None:
    found = credentials_of("store", Secrets({**KEYS, **more, "other": "x"}))

    assert found == {"access_key": "AKIA", "secret_key": "hidden-value", **token}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (None, "Secret store is missing: create it"),
        ({"accessKeyId": "AKIA"}, "Secret store has no key secretAccessKey: add it"),
        ({}, "Secret store has no key accessKeyId, secretAccessKey: add it"),
    ],
)
def test_a_secret_that_is_missing_or_lacks_a_key_is_named(
    given: Mapping[str, str] | None, message: str
) -> None:
    with pytest.raises(RefusedDiscoveryError) as caught:
        credentials_of("store", Secrets(given))

    assert str(caught.value) == message


def test_a_store_of_objects_needs_its_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.fs", None)

    assert isinstance(store_of(Store(), ("/in",), Secrets(None)), LocalStore)
    with pytest.raises(
        RefusedDiscoveryError,
        match=r"listed by pyarrow, which is missing: install balanced-source\[spark\]",
    ):
        store_of(Store(), ("s3://bucket/in",), Secrets(None))
