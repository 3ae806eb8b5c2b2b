"""Hosts for which objects are refused are tried again, less and less often."""

from typing import cast

from balanced_source_operator.controller.application_facts import ApplicationState
from balanced_source_operator.controller.decisions import Decision
from balanced_source_operator.kube.port import RefusedError
from balanced_source_operator.runtime.refused_hosts import RefusedHosts
from balanced_source_operator.spec import BalancedSourceSpec

REFUSED = RefusedError("exceeded quota", status=403)
SEEN = Decision(state=ApplicationState.NONE)


def test_pauses_double_up_to_half_a_minute_and_begin_again_with_another_spec() -> None:
    hosts = RefusedHosts()
    first, second = cast("BalancedSourceSpec", object()), cast("BalancedSourceSpec", object())

    pauses = [hosts.note("1", first, REFUSED, seen=SEEN).look_again for _ in range(7)]

    assert pauses == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
    assert hosts.note("1", second, REFUSED, seen=SEEN).look_again == 1.0
    assert hosts.note("2", first, REFUSED, seen=SEEN).look_again == 1.0
