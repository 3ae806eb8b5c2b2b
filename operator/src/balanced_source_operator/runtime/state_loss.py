"""What is said of an enumerator's state that is damaged, or was made again."""

from balanced_source.api import Problem
from balanced_source.errors import IncompatibleVersionError, StateError
from balanced_source.reasons import Reason


def corrupt(name: str, error: StateError) -> Problem:
    """Return the problem of a state that cannot be read.

    Args:
        name: of its ConfigMap.
        error: what is wrong with it.
    """
    remedy = (
        # To delete it would lose what only the state knows, and the next upgrade needs it.
        "Upgrade the operator to the release that wrote it"
        if isinstance(error, IncompatibleVersionError)
        else "Restore the ConfigMap from a backup, or delete it to rebuild the state from the"
        " driver's report"
    )
    message = (
        f"The enumerator state in ConfigMap {name} cannot be read: {error}. A running query keeps"
        f" the splits that it has, but nothing is rescaled or assigned until this is mended."
        f" {remedy}"
    )
    return Problem(reason=Reason.STATE_CORRUPT, message=message)


def rebuilt(name: str, lineage: int) -> str:
    """Return what is said of a state that was gone although its source is not new.

    Args:
        name: of its ConfigMap.
        lineage: of the state that was made.
    """
    return (
        f"ConfigMap {name} had no enumerator state, although this source is not new: it is rebuilt"
        f" from what drivers report and what was published, as lineage {lineage}"
    )
