"""Actions as text, so that a failure can be copied into a command that repeats it."""

import re
import typing
from collections.abc import Iterable
from typing import Any, Final

from walks.actions import drivers, operator, user
from walks.actions.base import Action, Step

ACTIONS: Final[tuple[type[Action], ...]] = (
    user.SetHosts,
    user.SetReadersPerHost,
    user.SetParallelism,
    user.SetLossPolicy,
    user.SetImage,
    user.SetBrokenImage,
    user.SetRestartPolicy,
    user.ChangeNonce,
    user.Suspend,
    user.Resume,
    user.Pause,
    user.Unpause,
    user.ApplyAgain,
    user.AddPartitions,
    drivers.Crash,
    drivers.TakeDown,
    drivers.BringUp,
    drivers.Hang,
    drivers.CutOff,
    drivers.Release,
    drivers.BreakOnHost,
    drivers.DeleteApplication,
    operator.RestartOperator,
    operator.KillOperator,
    operator.LoseState,
    operator.CopyState,
    operator.RestoreState,
    operator.DeleteDocument,
)
"""All actions; `worlds` says which of them a walk has."""


def word(action: type[Action]) -> str:
    """Return the name of an action, such as ``set-image``."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", action.__name__).lower()


NAMED: Final = {word(action): action for action in ACTIONS}


def text_of(steps: Iterable[Step]) -> str:
    """Return steps such as ``set-image image=img:1 wait=30; suspend wait=0``."""
    return "; ".join(map(_step_text, steps))


def steps_of(text: str) -> tuple[Step, ...]:
    """Return the steps that `text_of` wrote.

    Raises:
        ValueError: The text is not a list of steps.
    """
    return tuple(_step(part.split()) for part in text.split(";") if part.strip())


def _step_text(step: Step) -> str:
    return " ".join([action_text(step.action), f"wait={step.wait}"])


def action_text(action: Action) -> str:
    """Return an action such as ``set-image image=img:1``."""
    names = typing.get_type_hints(type(action))
    return " ".join([word(type(action)), *(f"{name}={getattr(action, name)}" for name in names)])


def _step(words: list[str]) -> Step:
    name, *parameters = words
    if name not in NAMED:
        raise ValueError(f'unknown action "{name}"; choose from {", ".join(NAMED)}')
    values = dict(parameter.split("=", 1) for parameter in parameters if "=" in parameter)
    wait = int(values.pop("wait", "0"))
    types = typing.get_type_hints(NAMED[name])
    if values.keys() != types.keys():
        raise ValueError(f'"{name}" needs the parameters {", ".join(types) or "wait"}')
    parsed: dict[str, Any] = {name: types[name](value) for name, value in values.items()}
    return Step(NAMED[name](**parsed), wait)
