"""The name under which an owner policy is stored."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from balanced_source.api import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignerIdentity:
    """Identifies an owner policy, in the same way in every release.

    Splits may move when the identity of a source's policy changes, so an upgrade alone must not
    change it.

    Attributes:
        name: of the policy; a word of its own, never the name of a class.
        parameters: what was chosen for it. Defaults are left out: a better default in a later
            release moves no split.
    """

    name: str
    parameters: Mapping[str, Json] = field(default_factory=dict)

    def to_json(self) -> Json:
        """Return the JSON value of the identity."""
        return {"name": self.name, "parameters": dict(self.parameters)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Inverse of `to_json`."""
        return cls(name=str(data["name"]), parameters=dict(data["parameters"]))


def chosen(assigner: Any) -> dict[str, Json]:
    """Return the fields of a policy (a dataclass) that differ from their defaults."""
    return {
        entry.name: value
        for entry in dataclasses.fields(assigner)
        if (value := getattr(assigner, entry.name)) != entry.default
    }


_INNER: Final = {
    "RoundRobinAssigner()": AssignerIdentity(name="RoundRobin"),
    "HashAssigner()": AssignerIdentity(name="Hash"),
    "LoadAwareAssigner(tolerance=0.01, aversion=0.02)": AssignerIdentity(name="LoadAware"),
}

_FORMER: Final = {
    **_INNER,
    **{
        f"PerClusterAssigner(inner={text})": AssignerIdentity(
            name="PerScope", parameters={"inner": inner.to_json()}
        )
        for text, inner in _INNER.items()
    },
}


def former_identity(text: str) -> AssignerIdentity | None:
    """Return the identity of a policy as release 0.1.0 stored it, by its class and fields.

    None if it is unknown.

    These are all that a user could choose in that release.
    """
    return _FORMER.get(text)
