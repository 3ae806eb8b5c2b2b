"""What a reason can be about."""

import enum


class ReasonKind(enum.Enum):
    """What a reason is about. The value is the heading on the page of reasons."""

    OPERATION = "Problems of the operator and the application"
    SOURCE = "Problems of the source"
    LOSS = "Records that are gone"
    STATE = "States"
    AUTOSCALING = "Decisions of the autoscaler"
    EVENT = "Events"
