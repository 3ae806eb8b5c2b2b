"""Which of the two readers serves, and what is said if it is not the one that was asked for."""

import pytest

from balanced_source.errors import InvalidSpecError
from balanced_source_spark.kafka import native, readers
from balanced_source_spark.kafka.readers import is_native


@pytest.mark.parametrize(
    ("implementation", "is_installed", "expected"),
    [("auto", True, True), ("auto", False, False), ("native", True, True), ("python", True, False)],
)
def test_the_native_reader_serves_where_it_is_installed(
    monkeypatch: pytest.MonkeyPatch, implementation: str, *, is_installed: bool, expected: bool
) -> None:
    said: list[str] = []
    monkeypatch.setattr(native, "is_available", lambda: is_installed)
    monkeypatch.setattr(readers, "tell", lambda _level, text, **_: said.append(text))

    assert is_native.__wrapped__(implementation) == expected
    assert ["not installed" in text for text in said] == ([] if is_installed else [True])


def test_a_native_reader_that_is_missing_is_an_error_where_it_was_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(native, "is_available", lambda: False)

    with pytest.raises(InvalidSpecError, match="balanced_source_native is not installed"):
        is_native.__wrapped__("native")
