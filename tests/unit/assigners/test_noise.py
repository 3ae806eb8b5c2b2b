"""What a history of loads says about the noise of a mean."""

import math

import pytest

from balanced_source.assigners._noise import MAX_BLOCKS, MIN_BLOCKS, NoiseHistory

BLOCK = 10.0


def with_blocks(*segments: tuple[float, ...]) -> NoiseHistory:
    return NoiseHistory(block=BLOCK, segments=segments)


def test_a_block_is_the_mean_of_its_observations() -> None:
    history = NoiseHistory(block=BLOCK)
    for second, load in ((100.0, 1.0), (105.0, 2.0), (109.9, 6.0)):
        history = history.observe(load, second)
    assert history.blocks == 0, "the block is not over"

    history = history.observe(7.0, 110.0)

    assert history.segments == ((4.0,),)
    assert (history.total, history.count, history.opened_at) == (0.0, 0, 110.0)


def test_without_enough_blocks_nothing_is_known() -> None:
    assert with_blocks((5.0,) * (MIN_BLOCKS - 1)).error_of_mean(60) == math.inf
    assert with_blocks((5.0,) * MIN_BLOCKS).error_of_mean(60) == 0.0


def test_a_change_that_was_made_on_purpose_is_no_noise() -> None:
    before = with_blocks((5.0, 5.0, 5.0))

    broken = before.broken()

    assert broken.segments == ((5.0, 5.0, 5.0), ())
    assert broken.opened_at is None
    after = broken.observe(50.0, 0.0).observe(50.0, BLOCK)
    assert after.segments == ((5.0, 5.0, 5.0), (50.0,))
    assert after.error_of_mean(60) == 0.0
    assert broken.broken() == broken, "a second change has no blocks before it"


def test_an_open_block_does_not_survive_a_change() -> None:
    history = NoiseHistory(block=BLOCK).observe(100.0, 0.0).broken()

    assert history.observe(1.0, 5.0).observe(1.0, 5.0 + BLOCK).segments == ((1.0,),)


def test_blocks_of_another_history_are_a_segment_of_their_own() -> None:
    joined = with_blocks((1.0, 1.0)).joined(with_blocks((9.0, 9.0)))

    assert joined.segments == ((1.0, 1.0), (9.0, 9.0), ())
    assert joined.error_of_mean(60) == 0.0, "the step between them is not compared"


@pytest.mark.parametrize(("blocks", "left"), [(0, (1.0, 2.0, 3.0)), (2, (1.0,)), (5, ())])
def test_the_newest_blocks_can_be_left_out(blocks: int, left: tuple[float, ...]) -> None:
    assert with_blocks((7.0,), (1.0, 2.0, 3.0)).without_newest(blocks).segments == ((7.0,), left)


def test_only_the_newest_blocks_are_kept() -> None:
    oldest, newest = (1.0, 2.0, 3.0), (5.0,) * (MAX_BLOCKS - 1)

    history = with_blocks(oldest, newest).observe(5.0, 0.0).observe(5.0, BLOCK)

    assert history.segments == ((*newest, 5.0),)
    kept = with_blocks(oldest, newest[1:]).observe(5.0, 0.0).observe(5.0, BLOCK)
    assert kept.segments == ((3.0,), newest)


def test_a_longer_mean_is_more_certain() -> None:
    noisy = with_blocks((4.0, 6.0) * 10)

    assert 0 < noisy.error_of_mean(400 * BLOCK) < noisy.error_of_mean(100 * BLOCK)
    assert noisy.error_of_mean(400 * BLOCK) == pytest.approx(noisy.error_of_mean(100 * BLOCK) / 2)


def test_a_burst_counts_although_it_was_seen_once() -> None:
    calm, burst = (5.0,) * 96, (5.0,) * 48 + (25.0,) + (5.0,) * 47

    assert with_blocks(calm).error_of_mean(BLOCK) == 0.0
    assert with_blocks(burst).error_of_mean(BLOCK) == pytest.approx(0.7 * 20 / math.sqrt(2))
