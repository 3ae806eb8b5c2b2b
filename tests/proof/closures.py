"""What is explored.

Small closures in every test run, large ones and random lives in `make proof`.
"""

from dataclasses import replace
from typing import Final

from proof.values import Budget, Setting

_TWO: Final = (("c", "d"), ("c",))
_PAUSED: Final = (("c", "d"), ("c", "-d"))
_RETENTION: Final = 1e9

LARGE: Final = (
    Setting(
        name="rescales and crashes",
        splits=4,
        records=2,
        parallelism=3,
        budget=Budget(rescales=2, crashes=2),
    ),
    Setting(
        name="two hosts, lost state",
        hosts=("0", "1"),
        splits=1,
        parallelism=2,
        records=2,
        budget=Budget(crashes=1, amnesia=1),
    ),
    Setting(
        name="a split between two hosts, lost state",
        hosts=("0", "1"),
        splits=2,
        records=1,
        parallelisms=(2,),
        budget=Budget(rescales=1, crashes=1, amnesia=1),
    ),
    Setting(
        name="a split between two hosts, restored state",
        hosts=("0", "1"),
        splits=2,
        records=1,
        parallelisms=(2,),
        budget=Budget(rescales=1, restores=1),
    ),
    Setting(
        name="a source with two hosts moves",
        hosts=("0", "1"),
        parallelism=2,
        records=1,
        budget=Budget(moves=1),
    ),
    Setting(
        name="two hosts, crash",
        hosts=("0", "1"),
        parallelism=2,
        records=1,
        budget=Budget(crashes=1),
    ),
    Setting(
        name="two hosts, rescale",
        hosts=("0", "1"),
        parallelisms=(1, 2),
        records=1,
        budget=Budget(rescales=1),
    ),
    Setting(
        name="growth",
        records=1,
        parallelisms=(1, 2),
        budget=Budget(rescales=1, crashes=1, growths=1),
    ),
    Setting(
        name="blind, then back", records=1, budget=Budget(blind=2, crashes=1), retention=_RETENTION
    ),
    Setting(
        name="zombie and old news",
        records=1,
        splits=1,
        budget=Budget(zombies=1, rescales=1, old_news=1),
    ),
    Setting(name="lost checkpoint", parallelisms=(1, 2), budget=Budget(rescales=2, wipes=1)),
    Setting(name="growth and crash", budget=Budget(growths=1, crashes=1), records=1),
    Setting(name="shrink and crash", budget=Budget(shrinks=1, crashes=1), records=1),
    Setting(name="blind broker", budget=Budget(blind=1, crashes=1), records=1),
    Setting(
        name="zombie",
        splits=1,
        budget=Budget(zombies=1, rescales=1),
        records=1,
        parallelisms=(1, 2),
    ),
    Setting(name="two hosts", hosts=("0", "1"), parallelism=2, splits=2, records=1),
    Setting(
        name="executors are awaited",
        has_executors=True,
        records=1,
        budget=Budget(rescales=1, crashes=1),
    ),
    Setting(
        name="rescale and crash",
        budget=Budget(rescales=1, crashes=1),
        records=1,
        parallelisms=(1, 2),
    ),
    Setting(name="drivers first", budget=Budget(crashes=1), records=1, are_drivers_early=True),
    Setting(
        name="a cluster goes and returns",
        budget=Budget(edits=2),
        records=1,
        variants=_TWO,
        retention=_RETENTION,
    ),
    Setting(name="lost state", budget=Budget(amnesia=1, crashes=1), parallelism=2),
)
"""Largest first: they run side by side."""

SMALL: Final = (
    Setting(name="two crashes", budget=Budget(crashes=2), records=1, splits=1),
    Setting(name="shrink", budget=Budget(shrinks=1), records=1),
    Setting(
        name="bounded",
        is_bounded=True,
        is_periodic=False,
        records=2,
        splits=1,
        budget=Budget(crashes=1),
    ),
    Setting(
        name="a topic that is named comes late",
        is_bounded=True,
        is_periodic=False,
        records=1,
        splits=1,
        names=("a", "b"),
        budget=Budget(crashes=1, growths=1),
    ),
    Setting(
        name="a cluster pauses, bounded",
        is_bounded=True,
        is_periodic=False,
        records=1,
        variants=_PAUSED,
        retention=_RETENTION,
        budget=Budget(edits=2),
    ),
    Setting(name="faults outside", budget=Budget(faults=1, crashes=1), records=1),
    Setting(name="old news", budget=Budget(old_news=1, rescales=1), records=1),
    Setting(name="Hash", budget=Budget(rescales=1), parallelism=2, strategy="Hash"),
    Setting(name="discovery once", budget=Budget(crashes=1), is_periodic=False),
    Setting(
        name="only what is new",
        budget=Budget(crashes=1, growths=1),
        records=1,
        splits=1,
        begins_latest=True,
    ),
    Setting(name="two operators", budget=Budget(rivals=1), records=1, splits=1),
    Setting(name="restored state", budget=Budget(restores=1), records=1, splits=1),
    Setting(
        name="an older checkpoint, and a split since",
        budget=Budget(copies=1, crashes=1, growths=1),
        records=1,
        splits=1,
    ),
    Setting(name="a source moves", budget=Budget(moves=1, crashes=1), records=1, splits=1),
    Setting(name="recreated topic", budget=Budget(recreations=1, crashes=1), records=1, splits=1),
    Setting(
        name="recreated topic, read anew",
        budget=Budget(recreations=1),
        records=1,
        splits=1,
        may_lose=True,
    ),
)
"""Together a few seconds."""

_LIFE: Final = Setting(name="", splits=3, records=2, retention=_RETENTION)
_HOSTS: Final = ("0", "1")

_UP_TO_THREE: Final = (("0",), ("0", "1"), ("0", "1", "2"))
_COMING: Final = replace(_LIFE, parallelism=2, host_sets=_UP_TO_THREE)

LIVES: Final = (
    replace(
        _COMING,
        name="hosts that come and go",
        has_executors=True,
        budget=Budget(rescales=3, crashes=5, zombies=1, hosts=4, overdue=2, growths=1, old_news=2),
    ),
    replace(
        _COMING,
        name="hosts that come and go, and lost state",
        budget=Budget(rescales=2, crashes=5, hosts=4, overdue=2, amnesia=2),
    ),
    replace(
        _COMING,
        name="hosts that come and go, and restored state",
        budget=Budget(rescales=2, crashes=5, hosts=4, overdue=1, restores=2),
    ),
    replace(
        _COMING,
        name="hosts that come and go, and moves",
        budget=Budget(rescales=2, crashes=5, hosts=4, overdue=2, moves=2, faults=1),
    ),
    replace(
        _COMING,
        name="hosts that are lost",
        hosts=("0", "1", "2"),
        parallelism=3,
        budget=Budget(
            rescales=2, crashes=6, zombies=2, hosts=1, losses=4, growths=1, old_news=2, silences=2
        ),
    ),
    replace(
        _COMING,
        name="hosts that are lost, and lost state",
        hosts=("0", "1"),
        budget=Budget(rescales=1, crashes=5, hosts=1, losses=3, zombies=1, amnesia=2, silences=2),
    ),
    replace(
        _COMING,
        name="hosts that are lost, and restored state",
        hosts=("0", "1"),
        budget=Budget(rescales=1, crashes=5, losses=3, restores=2, silences=2),
    ),
    replace(
        _COMING,
        name="hosts that are lost, at least once",
        hosts=("0", "1", "2"),
        parallelism=3,
        may_repeat=True,
        budget=Budget(rescales=2, crashes=6, hosts=1, losses=4, growths=1, old_news=2, silences=2),
    ),
    replace(
        _LIFE,
        name="one host",
        splits=4,
        records=3,
        has_executors=True,
        budget=Budget(
            rescales=4, crashes=5, zombies=1, growths=1, shrinks=1, blind=2, faults=3, old_news=3
        ),
    ),
    replace(
        _LIFE,
        name="two hosts",
        hosts=_HOSTS,
        budget=Budget(rescales=4, crashes=5, zombies=1, growths=1, blind=2, faults=3, old_news=3),
    ),
    replace(
        _LIFE,
        name="clusters that come and go",
        splits=4,
        variants=_TWO,
        budget=Budget(rescales=2, crashes=3, growths=1, edits=4, faults=2, moves=1),
    ),
    replace(
        _LIFE,
        name="two operators",
        variants=_TWO,
        budget=Budget(rescales=4, crashes=2, growths=1, edits=1, old_news=3, rivals=3),
    ),
    replace(
        _LIFE,
        name="restored state",
        splits=4,
        budget=Budget(rescales=4, crashes=3, growths=1, restores=2),
    ),
    replace(
        _LIFE,
        name="an older checkpoint",
        budget=Budget(rescales=3, crashes=4, growths=1, old_news=1, copies=1),
    ),
    replace(
        _LIFE,
        name="clusters and an older checkpoint",
        splits=2,
        variants=_TWO,
        budget=Budget(rescales=1, crashes=4, edits=4, copies=1),
    ),
    replace(
        _LIFE,
        name="clusters and lost state",
        splits=2,
        variants=_TWO,
        budget=Budget(crashes=1, edits=2, amnesia=1),
    ),
    replace(
        _LIFE,
        name="two hosts and lost state, only what is new",
        hosts=_HOSTS,
        begins_latest=True,
        budget=Budget(rescales=4, crashes=5, growths=1, amnesia=1, faults=1, old_news=3),
    ),
    replace(
        _LIFE,
        name="two hosts and lost state",
        hosts=_HOSTS,
        budget=Budget(rescales=4, crashes=6, growths=1, faults=1, old_news=3, amnesia=2),
    ),
    replace(
        _LIFE,
        name="two hosts and restored state",
        hosts=_HOSTS,
        budget=Budget(rescales=4, crashes=4, growths=1, old_news=1, restores=2),
    ),
    replace(
        _LIFE,
        name="bounded",
        splits=4,
        is_bounded=True,
        is_periodic=False,
        has_executors=True,
        budget=Budget(rescales=3, crashes=5, faults=2, old_news=2, zombies=1),
    ),
    replace(
        _LIFE,
        name="clusters that pause, bounded",
        splits=4,
        is_bounded=True,
        is_periodic=False,
        variants=_PAUSED,
        budget=Budget(rescales=2, crashes=3, edits=4, faults=2, old_news=2, moves=1),
    ),
    replace(
        _LIFE,
        name="a topic that is named comes late",
        is_bounded=True,
        is_periodic=False,
        names=("a", "o", "b"),
        budget=Budget(rescales=2, crashes=4, growths=1, faults=1, old_news=2),
    ),
    replace(
        _LIFE,
        name="recreated topics",
        budget=Budget(rescales=3, crashes=3, growths=1, recreations=2),
    ),
    replace(
        _LIFE,
        name="recreated topics, read anew",
        splits=4,
        may_lose=True,
        budget=Budget(
            rescales=4, crashes=4, growths=1, recreations=2, blind=2, faults=2, old_news=2
        ),
    ),
    replace(
        _LIFE,
        name="two hosts and recreated topics, read anew",
        hosts=_HOSTS,
        may_lose=True,
        budget=Budget(rescales=4, crashes=4, growths=1, recreations=2),
    ),
    replace(
        _LIFE,
        name="two hosts of which one comes late",
        hosts=_HOSTS,
        parallelism=2,
        host_sets=_UP_TO_THREE,
        budget=Budget(rescales=1, crashes=2, hosts=1, overdue=6),
    ),
    replace(
        _COMING,
        name="hosts that do not come at first",
        hosts=("0", "1", "2"),
        parallelism=3,
        budget=Budget(rescales=2, crashes=5, hosts=2, overdue=3, growths=1, old_news=2),
    ),
)
"""What random lives are about; larger than what can be visited whole."""
