"""Random lives of a source.

Whatever happens, every record arrives once, or the user's policy excuses it.

``LIVES=10000 pytest tests/unit/coordinator/test_random_lives.py`` runs more; ``FIRST_LIFE=…``
begins at another seed. A life that goes wrong is run again by its seed: ``FIRST_LIFE=1234
LIVES=1``.
"""

import os

import pytest

from support.lives import live

pytestmark = pytest.mark.unit

LIVES = int(os.environ.get("LIVES", "240"))
FIRST = int(os.environ.get("FIRST_LIFE", "0"))
GROUP = 20
GROUPS = [range(n, min(n + GROUP, FIRST + LIVES)) for n in range(FIRST, FIRST + LIVES, GROUP)]


@pytest.mark.parametrize("seeds", GROUPS, ids=lambda seeds: f"{seeds[0]}-{seeds[-1]}")
def test_every_record_arrives_once_in_every_life(seeds: range) -> None:
    for seed in seeds:
        live(seed, ("0",))


@pytest.mark.parametrize("seeds", GROUPS[::4], ids=lambda seeds: f"{seeds[0]}-{seeds[-1]}")
def test_every_record_arrives_once_in_every_life_with_two_hosts(seeds: range) -> None:
    for seed in seeds:
        live(seed, ("0", "1"))
