"""``spec.application.hosts``: how many SparkApplications read the source together."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from balanced_source_operator.contract.base import Model, rule, with_rules

if TYPE_CHECKING:
    from balanced_source_operator.spec import BalancedSourceSpec

MAX_HOSTS: Final = 64

_ONE_OF: Final = "set either count or readersPerHost"


class Hosts(Model):
    """How many SparkApplications (hosts) read the source.

    Each one has a Spark checkpoint of its own.
    """

    model_config = ConfigDict(
        json_schema_extra=with_rules(rule("has(self.count) != has(self.readersPerHost)", _ONE_OF))
    )

    count: Annotated[int, Field(ge=1, le=MAX_HOSTS)] | None = None
    """Number of hosts, whatever the parallelism is."""

    readers_per_host: Annotated[int, Field(ge=1, le=1000)] | None = None
    """Number of readers for each host.

    The number of hosts then follows parallelism, up to 64 hosts.
    """

    @model_validator(mode="after")
    def _has_one(self) -> "Hosts":
        if (self.count is None) == (self.readers_per_host is None):
            raise PydanticCustomError("one_of", _ONE_OF)
        return self


def host_names(spec: "BalancedSourceSpec") -> tuple[str, ...]:
    """Return the names of the hosts that a spec asks for: numbers from 0."""
    hosts = spec.application.hosts
    if hosts is None:
        return ("0",)
    needed = hosts.count or -(-spec.parallelism // (hosts.readers_per_host or 1))
    return tuple(str(number) for number in range(min(needed, MAX_HOSTS)))


def hosts_of(spec: "BalancedSourceSpec") -> Callable[[int], tuple[str, ...]]:
    """Return a function that tells which hosts another number of readers needs."""
    return lambda readers: host_names(spec.model_copy(update={"parallelism": readers}))


def readers_per_host(spec: "BalancedSourceSpec") -> int:
    """Return the number of readers of a host when all hosts are there."""
    return -(-spec.parallelism // len(host_names(spec)))
