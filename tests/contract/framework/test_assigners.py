"""The product's owner policies."""

from balanced_source.assigners import (
    HashAssigner,
    LoadAwareAssigner,
    PerScopeAssigner,
    RoundRobinAssigner,
)
from balanced_source.testing.assigner import AssignerContract


class TestHash(AssignerContract):
    assigner = HashAssigner()


class TestRoundRobin(AssignerContract):
    assigner = RoundRobinAssigner()


class TestLoadAware(AssignerContract):
    assigner = LoadAwareAssigner()


class TestPerScope(AssignerContract):
    assigner = PerScopeAssigner(LoadAwareAssigner())
