"""Which tests try a mutant first."""

from pathlib import Path

from mutants.baseline import Baseline, Observation

FILE = "/a/operator/src/balanced_source/coordinator/recovery.py"


def observed(cpu: float, *, is_good: bool = True) -> Observation:
    return Observation(
        files={}, seconds=cpu, cpu=cpu, is_good=is_good, lines=frozenset({(FILE, 7)})
    )


def order(**tests: Observation) -> list[str]:
    names = {
        "near": "tests/unit/coordinator/test_gate.py::test_a",
        "named": "tests/unit/runtime/test_recovery.py::test_b",
        "far": "tests/unit/runtime/test_hosts.py::test_c",
        "slow": "tests/unit/coordinator/test_lives.py::test_d",
    }
    found = Baseline(list(tests.values()), [names[name] for name in tests])
    chosen = list(tests)
    return [chosen[number] for number in found.of_lines(Path(FILE), [range(7, 8)])]


def test_quick_tests_come_first_and_those_about_the_same_part_before_others() -> None:
    assert order(far=observed(1), near=observed(2)) == ["near", "far"]
    assert order(far=observed(1), named=observed(2)) == ["named", "far"]
    assert order(near=observed(2), slow=observed(30), far=observed(1)) == ["near", "far", "slow"]
    assert order(slow=observed(30), far=observed(4)) == ["slow", "far"]


def test_a_test_that_fails_without_any_mutant_is_not_used() -> None:
    assert order(near=observed(2, is_good=False), far=observed(1)) == ["far"]


def test_only_as_many_tests_run_as_the_budget_pays_for() -> None:
    baseline = Baseline([observed(2.0), observed(3.0)], ["tests/a.py", "tests/b.py"])

    assert baseline.affordable([0, 1], 4.0) == [0]
    assert baseline.affordable([0, 1], 5.0) == [0, 1]
    assert baseline.affordable([1], 0.0) == [1], "at least one"
