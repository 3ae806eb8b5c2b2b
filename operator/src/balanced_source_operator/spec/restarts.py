"""When an application is started again.

``spec.restart`` is about one that has failed. It is not part of ``spec.application``, because a
change there restarts the application. ``spec.application.restart`` is about one whose settings
have changed.
"""

import enum
from typing import Annotated, Final

from pydantic import AfterValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from balanced_source import durations
from balanced_source_operator.contract.base import Duration, Model, rule, with_rules

MIN_WINDOW: Final = 60.0
MAX_WINDOW: Final = 24 * 3600.0
"""Seconds. A longer window would overlap with that of the next day."""

_DURATION: Final = "duration must be between 1m and 24h"
_WINDOW: Final = "set window if, and only if, policy is Window"


class Restart(Model):
    """Restarts of a failed application. The pause grows with each failure, up to ten minutes."""

    max_failures: Annotated[int, Field(ge=1, le=1000)] | None = None
    """Number of consecutive failures after which the application is not started again. The failed
    application is kept with its log. Absent: no limit."""


def _fits_a_day(text: str) -> str:
    if not MIN_WINDOW <= durations.seconds(text) <= MAX_WINDOW:
        raise PydanticCustomError("window_duration", _DURATION)
    return text


class Weekday(enum.StrEnum):
    """A day of the week."""

    MONDAY = "Mon"
    TUESDAY = "Tue"
    WEDNESDAY = "Wed"
    THURSDAY = "Thu"
    FRIDAY = "Fri"
    SATURDAY = "Sat"
    SUNDAY = "Sun"


class Window(Model):
    """A recurring time, in UTC."""

    model_config = ConfigDict(
        json_schema_extra=with_rules(
            rule(
                "duration(self.duration) >= duration('1m') && duration(self.duration) <="
                " duration('24h')",
                _DURATION,
            )
        )
    )

    days: Annotated[list[Weekday], Field(min_length=1, max_length=7)] | None = None
    """Days on which the window begins. It may end on the next day. Absent: every day."""

    start: Annotated[str, Field(pattern="^([01][0-9]|2[0-3]):[0-5][0-9]$", max_length=5)]
    """Time of day at which the window begins, as HH:MM in UTC."""

    duration: Annotated[Duration, AfterValidator(_fits_a_day)]
    """How long the window lasts, from 1m to 24h."""


class RestartPolicy(enum.StrEnum):
    """What a change that needs a restart waits for."""

    AUTOMATIC = "Automatic"
    ON_NONCE = "OnNonce"
    WINDOW = "Window"


class RestartStrategy(enum.StrEnum):
    """How the application of a source with one host restarts."""

    RECREATE = "Recreate"
    BLUE_GREEN = "BlueGreen"


class ApplicationRestart(Model):
    """When changed settings restart a running application.

    Of the fields here, only nonce restarts it.
    """

    model_config = ConfigDict(
        json_schema_extra=with_rules(rule("(self.policy == 'Window') == has(self.window)", _WINDOW))
    )

    policy: RestartPolicy = RestartPolicy.AUTOMATIC
    """Automatic: at once.

    OnNonce: when `nonce` changes. Window: in the next `window`. The condition RestartPending shows
    changes that wait. An application that does not run is replaced at once.
    """

    nonce: Annotated[int, Field(ge=0, le=2147483647)] | None = None
    """Change this value to restart the application now, with every policy, even if nothing else has
    changed. Removing it restarts nothing."""

    strategy: RestartStrategy = RestartStrategy.RECREATE
    """How one application restarts.

    Recreate: it is stopped, then started again. BlueGreen: a second application with the new
    settings first takes over its splits, and is stopped at the end. BlueGreen is for the packaged
    application without state, with a sink that two queries may write to: delta, hudi, iceberg or
    kafka. Several hosts restart in turn, without this field."""

    window: Window | None = None
    """When restarts may begin, for policy Window."""

    rollback_after: Duration = "10m"
    """Time after which a new application that has not completed a micro-batch, and does not run
    without failures, is replaced by one with the last healthy settings. 0: never."""

    @model_validator(mode="after")
    def _has_its_window(self) -> "ApplicationRestart":
        if (self.policy is RestartPolicy.WINDOW) != (self.window is not None):
            raise PydanticCustomError("window", _WINDOW)
        return self
