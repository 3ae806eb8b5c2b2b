"""Restarts of a source that come to a stage, for stories about what happens there."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from support.cluster_story import SPEC, Story
from support.host_drivers import Busy, images

NEXT: Final = "balanced-source/spark:next"
AFTER_NEXT: Final = "balanced-source/spark:after-next"

Reached: TypeAlias = Callable[[Story, Busy], bool]

_KAFKA: Final = SPEC["source"]["kafka"]
TWO_CLUSTERS: Final = {
    "kafka": {
        **_KAFKA,
        "clusters": [*_KAFKA["clusters"], {"name": "other", "bootstrapServers": "other:9092"}],
    }
}
"""The source of a story, with a second cluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Roll:
    """How a source restarts with changed settings.

    Attributes:
        hosts: that it has before and after.
        application: returns the spec's application with an image; None: with that of the start.
        stages: through which it comes, by their names.
    """

    hosts: tuple[str, ...]
    application: Callable[[str | None], dict[str, Any]]
    stages: dict[str, Reached]

    async def begin(self, story: Story, drivers: Busy, stage: str, **spec: Any) -> None:
        """Begin a restart with the image `NEXT`, and let it come to a stage."""
        await story.begin(parallelism=6, application=self.application(None), **spec)
        await drivers.rest(*self.hosts, splits=len(story.broker.ends))
        story.patch(application=self.application(NEXT))
        reached = self.stages[stage]
        await story.until(lambda: reached(story, drivers) or (drivers.step(), False)[1], stage)

    async def end(self, story: Story, drivers: Busy, *, image: str = NEXT, splits: int = 8) -> None:
        """Wait until the restart is over, and check that each record was delivered once."""
        await story.until(lambda: [drivers.step(), images(story) == {image}][1], "the settings")
        await drivers.settle(*self.hosts, splits=splits)
        assert images(story) == {image}
        drivers.check_each_once()
