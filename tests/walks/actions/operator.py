"""What happens to the operator and to its documents."""

import enum
from dataclasses import dataclass

from balanced_source_operator.resources.kinds import CONFIG_MAP
from support.cluster_story import NAMESPACE
from support.lost_hosts import SOURCE
from walks.actions.base import Action
from walks.walk import Walk


class Document(enum.StrEnum):
    """A document of a host."""

    ASSIGNMENT = "assignment"
    READERS = "readers"


@dataclass(frozen=True, slots=True)
class RestartOperator(Action):
    """Stop the operator, and start another one some seconds later."""

    pause: int

    async def carry_out(self, walk: Walk) -> None:
        await walk.stop_operators()
        await walk.wait(self.pause)
        walk.start_operator()


@dataclass(frozen=True, slots=True)
class KillOperator(Action):
    """Replace the operator by one that is killed at one of its calls to the API server."""

    call: int

    async def carry_out(self, walk: Walk) -> None:
        await walk.stop_operators()
        walk.start_doomed_operator(self.call)


@dataclass(frozen=True, slots=True)
class LoseState(Action):
    """Delete the state document while no operator runs."""

    pause: int

    async def carry_out(self, walk: Walk) -> None:
        await walk.stop_operators()
        walk.story.server.remove(CONFIG_MAP, NAMESPACE, SOURCE.documents.state)
        await walk.wait(self.pause)
        walk.start_operator()


@dataclass(frozen=True, slots=True)
class CopyState(Action):
    """Copy the state document, as a backup does."""

    async def carry_out(self, walk: Walk) -> None:
        walk.copy = walk.state()


@dataclass(frozen=True, slots=True)
class RestoreState(Action):
    """Write the copy of the state document back while no operator runs, if there is a copy."""

    pause: int

    async def carry_out(self, walk: Walk) -> None:
        if walk.copy:
            await walk.stop_operators()
            walk.restore(walk.copy)
            await walk.wait(self.pause)
            walk.start_operator()


@dataclass(frozen=True, slots=True)
class DeleteDocument(Action):
    """Delete the assignment or the report of a host."""

    host: str
    document: Document

    async def carry_out(self, walk: Walk) -> None:
        name = getattr(SOURCE.on_host(self.host).documents, self.document)
        walk.story.server.remove(CONFIG_MAP, NAMESPACE, name)
