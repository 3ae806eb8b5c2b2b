"""The operator half.

The model of ``spec.source.custom.config``, and the way from it to the source.
"""

from typing import Annotated

from pydantic import Field

from balanced_source.durations import seconds
from balanced_source_httplog.source import HttpLogSource, Server
from balanced_source_operator.contract.addresses import check_endpoint
from balanced_source_operator.contract.base import Duration, Model, ObjectName
from balanced_source_operator.contract.half import Common, OperatorHalf, Texts


class HttpLogSpec(Model):
    """What is read."""

    url: Annotated[
        str,
        Field(
            max_length=2048, pattern=r"^https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[A-Za-z0-9._/-]*)?$"
        ),
    ]
    """Where the API is: http or https, without a user, a password or a query."""

    secret: ObjectName | None = None
    """Secret in the namespace of the source, whose key `token` is sent to the API."""

    discovery_interval: Duration = "30s"
    """Time between two looks for new logs."""


class HttpLogOperatorHalf(OperatorHalf[HttpLogSpec]):
    """Logs behind an HTTP API."""

    spec = HttpLogSpec
    description = "Logs behind an HTTP API."
    can_be_part = False  # its Spark half reads by a journal

    def to_source(
        self, spec: HttpLogSpec, common: Common, texts: Texts, *, field: str
    ) -> HttpLogSource:
        # The operator asks this address from its own pod.
        check_endpoint(spec.url, field=f"{field}.url")
        return HttpLogSource(
            server=Server(url=spec.url.rstrip("/"), secret=spec.secret),
            assigner=common.assigner,
            rebalance_policy=common.rebalance_policy,
            discovery_interval=seconds(spec.discovery_interval) or None,
        )
