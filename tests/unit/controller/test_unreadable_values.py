"""Values that someone has edited, or that are missing, are taken for unknown."""

from balanced_source_operator.controller.conditions import _NUMBERS, _stored_numbers
from balanced_source_operator.runtime.trials import _created


def test_numbers_of_a_status_that_someone_has_edited_are_unknown() -> None:
    edited = dict.fromkeys(_NUMBERS, "many")
    assert _stored_numbers(edited) == _stored_numbers({})


def test_an_object_that_does_not_say_when_it_was_made_is_made_now() -> None:
    assert _created({"metadata": {}}, 7.0) == 7.0
    stamp = {"metadata": {"creationTimestamp": "1970-01-01T00:00:09Z"}}
    assert _created(stamp, 7.0) == 9.0
