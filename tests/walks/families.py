"""Actions with the values that their parameters may have."""

import random
import typing
from collections.abc import Callable, Sequence
from typing import Any, Final

from balanced_source_operator.spec.host_loss import Guarantee, HostLoss
from balanced_source_operator.spec.restarts import RestartPolicy
from walks.actions import drivers, operator, user
from walks.actions.base import Action
from walks.cast import Death
from walks.walk import IMAGES

PAUSES: Final = (0, 1, 5, 60)
"""Seconds without an operator."""


class Family:
    """Actions of one type; each parameter but the host has one of some values."""

    def __init__(self, action: type[Action], **values: Sequence[Any]) -> None:
        self._make: Callable[..., Action] = action
        self._values = values
        self._has_host = "host" in typing.get_type_hints(action)

    def draw(self, generator: random.Random, host: str) -> Action:
        """Return an action; if it concerns a host, it concerns this one."""
        drawn = {
            name: values[0] if len(values) == 1 else generator.choice(values)
            for name, values in self._values.items()
        }
        return self._make(**drawn, **({"host": host} if self._has_host else {}))


_POLICIES: Final = (HostLoss.WAIT, HostLoss.REASSIGN, HostLoss.REASSIGN)
_PATIENCE: Final = ("1m", "2m")
_EXACTLY_ONCE: Final = (Guarantee.EXACTLY_ONCE,)

# --- the user -------------------------------------------------------------------------------------

HOSTS: Final = Family(user.SetHosts, count=range(1, 5))
SEVERAL_HOSTS: Final = Family(user.SetHosts, count=range(2, 5))
READERS_PER_HOST: Final = Family(user.SetReadersPerHost, readers=range(1, 5))
TWO_READERS_PER_HOST: Final = Family(user.SetReadersPerHost, readers=(2,))
PARALLELISM: Final = Family(user.SetParallelism, readers=range(1, 9))
LARGER_PARALLELISM: Final = Family(user.SetParallelism, readers=range(4, 9))
LOSS_POLICY: Final = Family(
    user.SetLossPolicy, policy=_POLICIES, after=_PATIENCE, guarantee=_EXACTLY_ONCE
)
ANY_LOSS_POLICY: Final = Family(
    user.SetLossPolicy, policy=_POLICIES, after=_PATIENCE, guarantee=tuple(Guarantee)
)
IMAGE: Final = Family(user.SetImage, image=IMAGES)
BROKEN_IMAGE: Final = Family(user.SetBrokenImage)
RESTART_POLICY: Final = Family(user.SetRestartPolicy, policy=tuple(RestartPolicy))
NONCE: Final = Family(user.ChangeNonce)
SUSPEND: Final = Family(user.Suspend)
RESUME: Final = Family(user.Resume)
PAUSE: Final = Family(user.Pause)
UNPAUSE: Final = Family(user.Unpause)
APPLY_AGAIN: Final = Family(user.ApplyAgain, pause=PAUSES)
PARTITIONS: Final = Family(user.AddPartitions)

# --- drivers --------------------------------------------------------------------------------------

CRASH: Final = Family(drivers.Crash, death=tuple(Death))
TAKE_DOWN: Final = Family(drivers.TakeDown, death=tuple(Death), state=("SUBMITTED", "FAILED"))
BRING_UP: Final = Family(drivers.BringUp)
HANG: Final = Family(drivers.Hang)
CUT_OFF: Final = Family(drivers.CutOff)
RELEASE: Final = Family(drivers.Release)
BREAK_ON_HOST: Final = Family(drivers.BreakOnHost, image=IMAGES)
DELETE_APPLICATION: Final = Family(drivers.DeleteApplication)

# --- the operator and its documents ---------------------------------------------------------------

RESTART_OPERATOR: Final = Family(operator.RestartOperator, pause=PAUSES)
KILL_OPERATOR: Final = Family(operator.KillOperator, call=range(1, 41))
LOSE_STATE: Final = Family(operator.LoseState, pause=PAUSES)
COPY_STATE: Final = Family(operator.CopyState)
RESTORE_STATE: Final = Family(operator.RestoreState, pause=PAUSES)
DELETE_DOCUMENT: Final = Family(operator.DeleteDocument, document=tuple(operator.Document))
