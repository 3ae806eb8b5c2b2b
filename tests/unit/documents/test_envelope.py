"""What all documents share: their text, their digest, and errors about bodies that do not fit."""

import hashlib
from typing import Any

import pytest

from balanced_source.api import Json
from balanced_source.documents import envelope
from balanced_source.documents.envelope import DocumentKind, decode, encode, upgraded
from balanced_source.errors import CorruptDocumentError


def second(body: Json) -> Json:
    """Return a body of version 1 in version 2."""
    return {**body, "lag": body["unread"] + 1}


def third(body: Json) -> Json:
    """Return a body of version 2 in version 3."""
    return {**body, "lag": 2 * body["lag"]}


KIND = DocumentKind(name="Lag", version=3, upgrades={1: second, 2: third})


def test_the_text_of_a_document_is_fixed() -> None:
    """Other releases compare texts and digests, also of names outside of ASCII."""
    content = '{"body":{"a":1,"ort":"Köln"},"kind":"Lag","source":"uid-1","version":3}'
    digest = hashlib.sha256(content.encode()).hexdigest()[:32]
    text = encode(KIND, "uid-1", {"ort": "Köln", "a": 1})

    assert text == content.replace(',"kind"', f',"digest":"{digest}","kind"')
    assert decode(KIND, text, source="uid-1") == {"a": 1, "ort": "Köln"}


@pytest.mark.parametrize(("version", "lag"), [(1, 12), (2, 10), (3, 5)])
def test_each_older_version_passes_all_upgrades_that_follow(version: int, lag: int) -> None:
    text = encode(KIND, "uid-1", {"unread": 5, "lag": 5}, version=version)

    assert decode(KIND, text)["lag"] == lag


@pytest.mark.parametrize("body", [{}, [], "text", {"unread": "5"}, {"unread": None}])
def test_a_body_that_cannot_be_upgraded_names_its_kind_and_version(body: Any) -> None:
    with pytest.raises(CorruptDocumentError, match=r"^Lag: malformed body of version 1: "):
        upgraded(KIND, body, 1)


@pytest.mark.parametrize("text", ["", "{", '{"kind":"Lag"', "[" * 100_000, "nul"])
def test_a_text_that_is_not_json_names_its_kind(text: str) -> None:
    with pytest.raises(CorruptDocumentError, match=r"^Lag: not JSON: "):
        decode(KIND, text)


def test_a_document_with_half_of_a_character_was_written_by_another_program() -> None:
    text = encode(KIND, "uid-1", {"a": "x"}).replace('"x"', r'"\ud800"')

    with pytest.raises(CorruptDocumentError, match="changed by another program"):
        decode(KIND, text)


def test_a_source_with_characters_for_a_terminal_is_quoted() -> None:
    body: dict[str, Json] = {"a": 1}

    with pytest.raises(CorruptDocumentError, match="belongs to source uid-1, not to uid-2"):
        decode(KIND, encode(KIND, "uid-1", body), source="uid-2")
    with pytest.raises(CorruptDocumentError, match=r"belongs to source '\\x1b\[2J', not to uid-2"):
        decode(KIND, encode(KIND, "\x1b[2J", body), source="uid-2")


def test_equal_content_has_equal_digests_whatever_its_order() -> None:
    assert envelope.digest({"a": 1, "b": [2]}) == envelope.digest({"b": [2], "a": 1})
    assert envelope.digest({"a": 1}) == hashlib.sha256(b'{"a":1}').hexdigest()[:32]
