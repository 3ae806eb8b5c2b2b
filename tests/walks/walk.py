"""A walk under way: the story, its drivers, and what the user asks for."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from balanced_source_operator.resources.kinds import (
    BALANCED_SOURCE,
    CONFIG_MAP,
    PAUSED_ANNOTATION,
)
from support.cluster_story import NAMESPACE, Story
from support.fake_kubernetes import Fault
from support.lost_hosts import SOURCE
from support.virtual_time import clock
from walks.cast import Cast
from walks.rules import BrokenRuleError, Rule

STEP: Final = 2.0
"""Seconds between two micro-batches of a driver."""

GOOD_IMAGE: Final = "img:0"
IMAGES: Final = (GOOD_IMAGE, "img:1", "img:2")
BROKEN_IMAGE: Final = "img:broken"


@dataclass
class Walk:
    """What actions change.

    Attributes:
        promises: rules that the walk must not break.
        image: what the user asks for.
        nonce: the user's newest restart nonce.
        operators: how many operators were started.
        copy: the state document at an earlier time, if it was copied.
    """

    story: Story
    cast: Cast
    promises: frozenset[Rule]
    image: str = GOOD_IMAGE
    nonce: int = 0
    operators: int = 1
    copy: Mapping[str, Any] = field(default_factory=dict)

    def check(self, rule: Rule, broken: Any) -> None:
        """Fail if a promised rule is broken; `broken` says how, and is empty if it is not."""
        if broken and rule in self.promises:
            raise BrokenRuleError(rule, str(broken))

    async def wait(self, seconds: float, *, every: float = STEP) -> None:
        """Let drivers run for some time, and restart operators that were killed."""
        due = clock() + seconds
        while True:
            await self._restart_killed_operators()
            self.cast.step()
            if clock() >= due:
                break
            await asyncio.sleep(every)
        self.check_no_record_twice()

    def check_no_record_twice(self) -> None:
        twice = [record for record, count in self.cast.deliveries().items() if count > 1]
        self.check(Rule.NO_RECORD_TWICE, twice)

    # --- the source -------------------------------------------------------------------------------

    def patch_application(self, **changes: Any) -> None:
        """Change the application of the spec."""
        self.story.patch(application=changes)

    def set_image(self, image: str) -> None:
        self.image = image
        self.patch_application(image=image)

    def set_paused(self, *, is_paused: bool) -> None:
        annotations = {PAUSED_ANNOTATION: "true" if is_paused else None}
        change = {"metadata": {"annotations": annotations}}
        self.story.server.edit(BALANCED_SOURCE, NAMESPACE, SOURCE.name, change)

    @property
    def spec(self) -> Mapping[str, Any]:
        """The source's spec."""
        found: Mapping[str, Any] = self.story.server.find(BALANCED_SOURCE, NAMESPACE, SOURCE.name)
        spec: Mapping[str, Any] = found["spec"]
        return spec

    @property
    def conditions(self) -> dict[str, Mapping[str, Any]]:
        """The conditions of the status, by type."""
        return {c["type"]: c for c in self.story.status.get("conditions", [])}

    def images(self) -> dict[str, str]:
        """Return the image of each host's application."""
        found = self.cast.applications()
        return {host: str(m["spec"]["image"]) for host, m in found.items()}

    # --- operators --------------------------------------------------------------------------------

    async def stop_operators(self) -> None:
        for operator in list(self.story.operators):
            await operator.stop()
            self.story.operators.remove(operator)

    def start_operator(self) -> None:
        """Start an operator with a name of its own."""
        self.operators += 1
        self.story.start_operator(name=f"operator-{self.operators}")

    def start_doomed_operator(self, call: int) -> None:
        """Start an operator that is killed at one of its calls."""
        self.story.start_operator(self.story.server.client(Fault.KILLED, at=call))

    async def _restart_killed_operators(self) -> None:
        for operator in [o for o in self.story.operators if o.client.is_dead]:
            await operator.stop()
            self.story.operators.remove(operator)
            self.story.start_operator()

    # --- the stored state -------------------------------------------------------------------------

    def state(self) -> Mapping[str, Any]:
        """Return the content of the state document; empty if there is none."""
        found = self.story.server.find(CONFIG_MAP, NAMESPACE, SOURCE.documents.state) or {}
        return {name: found[name] for name in ("data", "binaryData") if name in found}

    def restore(self, content: Mapping[str, Any]) -> None:
        """Write an older content of the state document, if the document exists."""
        self.story.seen.clear()
        if self.state():
            name, edit = SOURCE.documents.state, self.story.server.edit
            edit(CONFIG_MAP, NAMESPACE, name, {"data": None, "binaryData": None})
            edit(CONFIG_MAP, NAMESPACE, name, content)
