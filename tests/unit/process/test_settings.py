"""Settings of the process: wrong ones end it with a sentence that names the variable."""

import pytest

from balanced_source.errors import InvalidSpecError
from balanced_source_operator.settings import settings_from
from support.selectors import INVALID, VALID

SELECTOR = "BALANCED_SOURCE_NAMESPACE_SELECTOR"


@pytest.mark.parametrize("selector", VALID)
def test_a_label_selector_is_taken_as_it_is(selector: str) -> None:
    assert settings_from({SELECTOR: selector}).namespace_selector == selector


@pytest.mark.parametrize("selector", INVALID)
def test_what_is_not_a_label_selector_is_refused(selector: str) -> None:
    with pytest.raises(InvalidSpecError, match="is not a label selector") as raised:
        settings_from({SELECTOR: selector})

    assert raised.value.field == SELECTOR


@pytest.mark.parametrize("text", ["", "  "])
def test_an_empty_selector_is_none(text: str) -> None:
    assert settings_from({SELECTOR: text}).namespace_selector == ""


def test_namespaces_by_name_and_by_label_exclude_each_other() -> None:
    names = {"BALANCED_SOURCE_NAMESPACES": "jobs"}
    assert settings_from({**names, SELECTOR: ""}).namespaces == ("jobs",)

    with pytest.raises(InvalidSpecError, match="cannot be combined with BALANCED_SOURCE_NAMESPA"):
        settings_from({**names, SELECTOR: "shard=a"})
