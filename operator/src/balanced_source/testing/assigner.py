"""What every `SplitAssigner` must do, whatever its policy."""

import json
import random
from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from balanced_source.assigners import AssignerIdentity, Placement, SplitAssigner, place


@st.composite
def placements(draw: st.DrawFn) -> Placement:
    """Questions of any kind: some owned, some pending, with loads."""
    parallelism = draw(st.integers(1, 6))
    splits = [
        ("c", topic, p)
        for topic in draw(st.lists(st.sampled_from("abc"), unique=True))
        for p in range(6)
    ]
    owned = draw(st.lists(st.sampled_from(splits), unique=True)) if splits else []
    return Placement(
        parallelism=parallelism,
        owners={s: draw(st.integers(0, parallelism - 1)) for s in owned},
        pending=[s for s in splits if s not in owned],
        may_move=draw(st.booleans()),
        weights={s: draw(st.floats(0, 1e6)) for s in splits if draw(st.booleans())},
    )


_shared = settings(suppress_health_check=[HealthCheck.differing_executors], deadline=None)
"""Several classes run the same test function: that is what a suite is."""


class AssignerContract:
    """Derive, set the attribute, and name the class ``Test…``.

    Attributes:
        assigner: under test.
    """

    assigner: SplitAssigner

    @_shared
    @given(question=placements())
    def test_every_pending_split_gets_a_reader_that_exists(self, question: Placement) -> None:
        answer = place(self.assigner, question)

        assert set(question.pending) <= answer.keys()
        assert all(0 <= owner < question.parallelism for owner in answer.values())
        assert answer.keys() <= {*question.pending, *question.owners}

    @_shared
    @given(question=placements())
    def test_nothing_moves_unless_it_may(self, question: Placement) -> None:
        answer = place(self.assigner, replace(question, may_move=False))

        assert answer.keys() == set(question.pending)

    @_shared
    @given(question=placements(), seed=st.integers())
    def test_the_order_of_the_question_does_not_matter(
        self, question: Placement, seed: int
    ) -> None:
        chance = random.Random(seed)
        owners, pending = list(question.owners.items()), list(question.pending)
        chance.shuffle(owners)
        chance.shuffle(pending)

        assert place(
            self.assigner, replace(question, owners=dict(owners), pending=pending)
        ) == place(self.assigner, question)

    @_shared
    @given(question=placements())
    def test_what_was_answered_stays(self, question: Placement) -> None:
        """Asked again about its own answer, a policy moves nothing: it never flaps."""
        settled = {**question.owners, **place(self.assigner, question)}
        again = replace(question, owners=settled, pending=())

        assert {s: o for s, o in place(self.assigner, again).items() if settled[s] != o} == {}

    def test_equal_settings_are_equal(self) -> None:
        # Assigners are dataclasses
        assert self.assigner == replace(self.assigner)  # type: ignore[type-var]
        # The same
        assert hash(self.assigner) == hash(replace(self.assigner))  # type: ignore[type-var]

    def test_its_identity_can_be_stored(self) -> None:
        stored = json.loads(json.dumps(self.assigner.identity.to_json()))

        assert AssignerIdentity.from_json(stored) == self.assigner.identity
        assert self.assigner.identity.name

    def test_no_splits_give_an_empty_answer(self) -> None:
        assert place(self.assigner, Placement(parallelism=3, may_move=True)) == {}
