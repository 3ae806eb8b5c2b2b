"""An error that no one expected names the connector whose mistake it is."""

import sys
import types

import pytest

from balanced_source.reasons import Reason
from balanced_source_adapters import mistakes
from balanced_source_adapters.registrations import Registration, Registrations
from balanced_source_operator.runtime.environment import Desired
from balanced_source_operator.runtime.sentences import defect
from support.builders import make_spec
from support.world import kafka_source

DESIRED = Desired(spec=make_spec(), source=kafka_source("c"))


def test_a_defect_of_ours_is_reported_to_us() -> None:
    found = defect(DESIRED, ValueError("odd"))

    assert found.reason == Reason.INTERNAL_ERROR
    assert found.message == (
        "The operator failed with ValueError: odd. It starts over from the stored state and retries"
        " automatically; the running query is untouched. Report this message and the operator's log"
    )
    assert defect(None, ValueError("odd")) == found


def test_a_mistake_of_a_connector_is_reported_to_its_authors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = types.ModuleType("odd_source")
    exec("def start():\n    return {}['x']\n", module.__dict__)  # noqa: S102 - made by this test
    monkeypatch.setitem(sys.modules, "odd_source", module)
    odd = Registrations([Registration(kind="odd", reference="odd_source:Odd", package="odd 1.0")])
    monkeypatch.setattr(mistakes, "registered", lambda: odd)

    with pytest.raises(KeyError) as caught:
        module.start()
    found = defect(DESIRED, caught.value)

    assert found.reason == Reason.CONNECTOR_BROKEN
    assert found.message == (
        "Connector 'odd' of odd 1.0 failed in start: KeyError: 'x'. Report this to the authors of"
        " the package, with the traceback from the log. The operator starts over from the stored"
        " state and retries automatically; the running query is untouched"
    )
