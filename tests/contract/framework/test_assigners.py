"""The product's owner policies."""

from balanced_source.assigners import HashAssigner, LoadAwareAssigner, RoundRobinAssigner
from contract.suites.assigner import AssignerContract


class TestHash(AssignerContract):
    assigner = HashAssigner()


class TestRoundRobin(AssignerContract):
    assigner = RoundRobinAssigner()


class TestLoadAware(AssignerContract):
    assigner = LoadAwareAssigner()
