"""What happens to drivers and their applications."""

from dataclasses import dataclass

from balanced_source_operator.resources.kinds import KUBEFLOW_APPLICATION
from support.cluster_story import NAMESPACE
from walks.actions.base import Action
from walks.cast import Cast, Death, Mode
from walks.walk import Walk


def _crash(cast: Cast, host: str, death: Death) -> None:
    """Kill a driver, if the host has one; its application fails."""
    application = cast.applications().get(host)
    if host in cast.processes:
        cast.kill(host, death)
        if application is not None:
            cast.set_state(application["metadata"]["name"], "FAILED", "the driver was killed")


@dataclass(frozen=True, slots=True)
class Crash(Action):
    host: str
    death: Death

    async def carry_out(self, walk: Walk) -> None:
        _crash(walk.cast, self.host, self.death)


@dataclass(frozen=True, slots=True)
class TakeDown(Action):
    """Crash a driver, and let no other one start on this host.

    Attributes:
        state: of the applications that are created for the host from now on.
    """

    host: str
    death: Death
    state: str

    async def carry_out(self, walk: Walk) -> None:
        walk.cast.down[self.host] = self.state
        _crash(walk.cast, self.host, self.death)


@dataclass(frozen=True, slots=True)
class BringUp(Action):
    """Let drivers start on a host again."""

    host: str

    async def carry_out(self, walk: Walk) -> None:
        walk.cast.down.pop(self.host, None)


@dataclass(frozen=True, slots=True)
class Hang(Action):
    """Let a driver do nothing any longer, if the host has one."""

    host: str

    async def carry_out(self, walk: Walk) -> None:
        if self.host in walk.cast.processes:
            walk.cast.processes[self.host].mode = Mode.HANGS


@dataclass(frozen=True, slots=True)
class CutOff(Action):
    """Take the API server from a driver, which still reads until its lease ends."""

    host: str

    async def carry_out(self, walk: Walk) -> None:
        walk.cast.cut_off(self.host)


@dataclass(frozen=True, slots=True)
class Release(Action):
    """Let a driver that hangs or is cut off work again."""

    host: str

    async def carry_out(self, walk: Walk) -> None:
        walk.cast.release(self.host)


@dataclass(frozen=True, slots=True)
class BreakOnHost(Action):
    """Let no driver start with this image on this host."""

    host: str
    image: str

    async def carry_out(self, walk: Walk) -> None:
        walk.cast.broken_on_host.add((self.host, self.image))


@dataclass(frozen=True, slots=True)
class DeleteApplication(Action):
    host: str

    async def carry_out(self, walk: Walk) -> None:
        application = walk.cast.applications().get(self.host)
        if application is not None:
            name = application["metadata"]["name"]
            walk.story.server.remove(KUBEFLOW_APPLICATION, NAMESPACE, name)
