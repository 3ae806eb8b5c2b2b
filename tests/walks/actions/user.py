"""What users do to a source."""

import asyncio
from dataclasses import dataclass
from typing import Final

from balanced_source_operator.resources.kinds import BALANCED_SOURCE
from balanced_source_operator.spec.host_loss import Guarantee, HostLoss
from balanced_source_operator.spec.restarts import RestartPolicy
from support.builders import source_body
from support.cluster_story import NAMESPACE
from support.lost_hosts import SOURCE
from support.world import UID
from walks.actions.base import Action
from walks.walk import BROKEN_IMAGE, STEP, Walk

TASKS_END: Final = 15
"""Seconds after which tasks of a deleted source have ended."""


@dataclass(frozen=True, slots=True)
class SetHosts(Action):
    count: int

    async def carry_out(self, walk: Walk) -> None:
        walk.patch_application(hosts={"count": self.count, "readersPerHost": None})


@dataclass(frozen=True, slots=True)
class SetReadersPerHost(Action):
    readers: int

    async def carry_out(self, walk: Walk) -> None:
        walk.patch_application(hosts={"count": None, "readersPerHost": self.readers})


@dataclass(frozen=True, slots=True)
class SetParallelism(Action):
    readers: int

    async def carry_out(self, walk: Walk) -> None:
        walk.story.patch(parallelism=self.readers)


@dataclass(frozen=True, slots=True)
class SetLossPolicy(Action):
    policy: HostLoss
    after: str
    guarantee: Guarantee

    async def carry_out(self, walk: Walk) -> None:
        guarantee = self.guarantee if self.policy is HostLoss.REASSIGN else None
        policy = {"type": self.policy, "after": self.after, "guarantee": guarantee}
        walk.patch_application(hostLossPolicy=policy)


@dataclass(frozen=True, slots=True)
class SetImage(Action):
    image: str

    async def carry_out(self, walk: Walk) -> None:
        walk.set_image(self.image)


@dataclass(frozen=True, slots=True)
class SetBrokenImage(Action):
    """Ask for an image with which no driver starts."""

    async def carry_out(self, walk: Walk) -> None:
        walk.cast.broken_images.add(BROKEN_IMAGE)
        walk.set_image(BROKEN_IMAGE)


@dataclass(frozen=True, slots=True)
class SetRestartPolicy(Action):
    policy: RestartPolicy

    async def carry_out(self, walk: Walk) -> None:
        is_window = self.policy is RestartPolicy.WINDOW
        window = {"start": "03:00", "duration": "1h"} if is_window else None
        walk.patch_application(restart={"policy": self.policy, "window": window})


@dataclass(frozen=True, slots=True)
class ChangeNonce(Action):
    async def carry_out(self, walk: Walk) -> None:
        walk.nonce += 1
        walk.patch_application(restart={"nonce": walk.nonce})


@dataclass(frozen=True, slots=True)
class Suspend(Action):
    async def carry_out(self, walk: Walk) -> None:
        walk.story.patch(suspend=True)


@dataclass(frozen=True, slots=True)
class Resume(Action):
    async def carry_out(self, walk: Walk) -> None:
        walk.story.patch(suspend=False)


@dataclass(frozen=True, slots=True)
class Pause(Action):
    async def carry_out(self, walk: Walk) -> None:
        walk.set_paused(is_paused=True)


@dataclass(frozen=True, slots=True)
class Unpause(Action):
    async def carry_out(self, walk: Walk) -> None:
        walk.set_paused(is_paused=False)


@dataclass(frozen=True, slots=True)
class ApplyAgain(Action):
    """Delete the source, and apply its manifest again when its tasks have ended."""

    pause: int

    async def carry_out(self, walk: Walk) -> None:
        spec = walk.spec
        walk.story.server.remove(BALANCED_SOURCE, NAMESPACE, SOURCE.name)
        walk.story.seen.clear()
        await walk.wait(max(self.pause, 3))
        await asyncio.sleep(TASKS_END)
        await walk.wait(STEP)
        body = source_body(**spec)
        body["metadata"]["uid"] = UID
        walk.story.server.add(BALANCED_SOURCE, body)


@dataclass(frozen=True, slots=True)
class AddPartitions(Action):
    """Let the topic grow by three partitions that hold records."""

    async def carry_out(self, walk: Walk) -> None:
        first = len(walk.story.broker.ends)
        walk.story.broker.create("main", "orders", range(first, first + 3), end=3)
