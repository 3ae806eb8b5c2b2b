"""Every state of a small world, on the real code; `make proof` visits larger ones."""

import pytest

from proof.closures import SMALL
from proof.explorer import Explorer
from proof.values import Setting

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("setting", SMALL, ids=lambda setting: setting.name)
def test_all_rules_hold_in_every_state(setting: Setting) -> None:
    report = Explorer(setting).run()

    assert report.problem is None, "\n  ".join(
        [report.problem, *(" ".join(map(str, step)) for step in report.trace)]
    )
    assert report.ends, "nothing ever comes to rest"
