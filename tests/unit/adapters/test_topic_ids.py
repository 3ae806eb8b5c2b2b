"""Topic ids are freed, whether the client library leaks a reference to them or not."""

import ctypes
import gc
import sys
import weakref
from types import SimpleNamespace

import pytest

from balanced_source_adapters.kafka.topic_ids import take_topic_id


class Identifier:
    def __str__(self) -> str:
        return "dJq2Xh0aQ4u0gkz2d0bqfQ"


@pytest.mark.parametrize("leaked", [0, 1])
def test_an_id_is_freed_with_its_description(leaked: int) -> None:
    description = SimpleNamespace(topic_id=Identifier())
    alive = weakref.ref(description.topic_id)
    for _ in range(leaked):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(description.topic_id))

    assert take_topic_id(description) == "dJq2Xh0aQ4u0gkz2d0bqfQ"

    assert alive() is not None, "still in use"
    del description
    gc.collect()
    assert alive() is None


def test_an_id_in_use_by_another_process_is_not_freed() -> None:
    """Two references more are none that the library leaked."""
    identifier = Identifier()
    description = SimpleNamespace(topic_id=identifier)
    others = [identifier]
    before = sys.getrefcount(identifier)
    take_topic_id(description)
    assert sys.getrefcount(identifier) == before
    assert others == [identifier]
