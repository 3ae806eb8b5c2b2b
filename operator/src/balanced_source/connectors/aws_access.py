"""How a service with the interface of one of AWS is reached."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsAccess:
    """Address and credentials; nothing secret.

    Attributes:
        endpoint: URL; empty for AWS.
        region: empty for the client's default.
        secret: name of the Secret with `accessKeyId` and `secretAccessKey`; None: the standard
            chain of the process.
    """

    endpoint: str = ""
    region: str = ""
    secret: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the JSON value for readers."""
        return {"endpoint": self.endpoint, "region": self.region, "secret": self.secret}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Inverse of `to_json`."""
        secret = data["secret"]
        return cls(
            endpoint=str(data["endpoint"]),
            region=str(data["region"]),
            secret=None if secret is None else str(secret),
        )
