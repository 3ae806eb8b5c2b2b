"""Makes a walk that breaks a rule shorter."""

import time

from walks.play import Problem, Script, play, shorter


def shrunk(script: Script, problem: Problem, *, seconds: float) -> tuple[Script, Problem]:
    """Leave actions out for as long as the walk breaks the same rule, and time is left."""
    until = time.monotonic() + seconds
    length = len(script.steps) + 1
    while len(script.steps) < length:
        length = len(script.steps)
        script, problem = _pass(script, problem, until)
    return script, problem


def _pass(script: Script, problem: Problem, until: float) -> tuple[Script, Problem]:
    """Try once to leave out each action."""
    place = 0
    while place < len(script.steps) and time.monotonic() < until:
        less = shorter(script, (*script.steps[:place], *script.steps[place + 1 :]))
        found = play(less)
        if found is not None and found.rule is problem.rule:
            script, problem = less, found
        else:
            place += 1
    return script, problem
