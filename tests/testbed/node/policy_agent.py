"""Enforces a cluster's NetworkPolicies, as the agent of a network plug-in does on its node."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import structlog

from testbed.commands import find_program, run
from testbed.errors import CommandError
from testbed.kubectl import Kubectl
from testbed.node.policies import ruleset

_EVERY = 1.0  # seconds; pods get their addresses as they start
_KINDS = ("NetworkPolicy", "Pod", "Namespace")

log = structlog.get_logger(__name__)


class PolicyAgent:
    """Keeps the rules of the network namespace that the calling thread is in.

    Args:
        kubectl: of the cluster.
    """

    def __init__(self, kubectl: Kubectl) -> None:
        self._kubectl = kubectl
        self._program = find_program("nft", "Install nftables.")
        self._rules = ""

    @contextmanager
    def running(self) -> Iterator[None]:
        """Enforce what there is, and follow until the end; the rules end with the namespace."""
        self.update()
        stopped = threading.Event()
        follower = threading.Thread(target=self._follow, args=(stopped,), name="policy-agent")
        follower.start()
        try:
            yield
        finally:
            stopped.set()
            follower.join()

    def update(self) -> None:
        """Enforce the policies as they are now.

        Raises:
            TestbedError: one uses something that is not translated.
        """
        shown = self._kubectl.kubectl("get", ",".join(_KINDS), "-A", "-o", "json")
        found = json.loads(shown)["items"]
        rules = ruleset(*([one for one in found if one["kind"] == kind] for kind in _KINDS))
        if rules != self._rules:
            run([self._program, "-f", "-"], stdin=rules)
            self._rules = rules

    def _follow(self, stopped: threading.Event) -> None:
        while not stopped.wait(_EVERY):
            try:
                self.update()
            except CommandError as error:
                log.warning("cannot update the rules of NetworkPolicies", error=str(error))
