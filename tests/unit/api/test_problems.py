"""The board of problems: each change is told once, and the order does not depend on history."""

from hypothesis import given
from hypothesis import strategies as st

from balanced_source.api import Problem, ProblemBoard, ProblemChange, fatal_problem

GONE = Problem(
    reason="LogTruncated", message="3 records of orders/0 are gone", scope="main", is_fatal=True
)
SLOW = Problem(reason="NoAnswer", message="cluster b does not answer: check it", scope="b")

changes = st.lists(
    st.tuples(
        st.one_of(
            st.sampled_from(["a", "b"]),
            st.tuples(st.sampled_from(["a", "c"]), st.sampled_from(["x", "y"])),
        ),
        st.sampled_from([None, GONE, SLOW]),
    ),
    max_size=30,
)


@given(changes)
def test_a_listener_that_applies_the_changes_knows_the_board(
    made: list[tuple[str, Problem | None]],
) -> None:
    heard: list[ProblemChange] = []
    board = ProblemBoard(heard.append)
    expected: dict[object, Problem] = {}

    for key, problem in made:
        board.set(key, problem)
        expected = {k: v for k, v in {**expected, key: problem}.items() if v is not None}

    replayed: dict[object, Problem] = {}
    for change in heard:
        assert replayed.get(change.key) == change.before != change.after
        replayed = {
            k: v for k, v in {**replayed, change.key: change.after}.items() if v is not None
        }
    assert replayed == expected
    assert sorted(map(repr, board)) == sorted(map(repr, expected.values()))


@given(changes)
def test_the_order_does_not_depend_on_history(made: list[tuple[str, Problem | None]]) -> None:
    board = ProblemBoard()
    for key, problem in made:
        board.set(key, problem)
    final = {
        key: problem for key, problem in made if board.get(key) is not None and problem is not None
    }
    again = ProblemBoard()

    for key in reversed(list(final)):
        again.set(key, board.get(key))

    assert list(again) == list(board)
    assert [problem.is_fatal for problem in board] == sorted(
        (p.is_fatal for p in board), reverse=True
    )


def test_a_fatal_problem_is_found_among_others() -> None:
    board = ProblemBoard()
    board.raise_("a", SLOW)
    assert fatal_problem(board) is None

    board.raise_(("topic", "main", "orders"), GONE)

    assert fatal_problem(board) == GONE
    assert list(board) == [GONE, SLOW]
    board.clear(("topic", "main", "orders"))
    assert list(board) == [SLOW]
    assert len(board) == 1


def test_a_problem_can_be_written_whatever_it_quotes() -> None:
    """A condition is UTF-8, and the name of a file may be anything."""
    problem = Problem(reason="Odd", message="file a\udcff\ud800 is gone: ☃", scope="a\udcff")

    assert (problem.message, problem.scope) == ("file a?? is gone: ☃", "a?")
    assert problem.message.encode()
