"""Which hosts do not run, and which of them tell nothing about the settings in effect."""

from dataclasses import replace

from balanced_source_operator.controller.broken_hosts import BrokenHosts, dump, load
from balanced_source_operator.controller.restarts import after_hosts
from balanced_source_operator.controller.rollback import NOTHING, memory_of, text_of

FIRST = BrokenHosts().asked("2-a", None)


def broken(known: BrokenHosts, *hosts: str) -> BrokenHosts:
    return known.looked(hosts, late=frozenset(hosts))


def test_a_host_is_excused_when_it_was_broken_before_other_settings_took_effect() -> None:
    known = broken(FIRST, "1").asked("2-b", None)
    assert known.excused == {"1"}
    assert broken(known, "0", "1").excused == {"1"}, "these settings broke the other one"


def test_another_nonce_excuses_and_its_removal_does_not() -> None:
    known = broken(FIRST.asked("2-a", 1), "1")
    assert known.asked("2-a", None) is known
    assert known.asked("2-a", 2).excused == {"1"}


def test_a_host_that_runs_again_is_forgotten() -> None:
    known = broken(FIRST, "1").asked("2-b", None)
    assert known.looked((), late=frozenset()) == FIRST.asked("2-b", None)
    assert known.looked(("1",), late=frozenset()) is known, "it was not given time enough"


def test_the_hash_of_an_operator_that_knows_one_version_more_is_the_same() -> None:
    assert FIRST.asked("3-c,2-a", None) is FIRST


def test_it_is_stored_while_a_host_is_broken() -> None:
    known = broken(broken(FIRST, "1").asked("2-b", 4), "0", "1")
    memory = replace(NOTHING, hosts=known)
    assert load(dump(known)) == known
    many = [broken(FIRST, *names) for names in ("12345", "54321", "31425")]
    assert len({text_of(replace(NOTHING, hosts=each)) for each in many}) == 1, "no order of a set"
    assert memory_of(text_of(memory)) == memory
    assert dump(FIRST) == {}
    assert memory_of('{"hosts":{"broken":[]}}') == NOTHING


def test_a_host_that_holds_up_the_others_is_named_with_what_to_do() -> None:
    waits, stuck = after_hosts(("1", "2"), broken=()), after_hosts(("0",), broken={"0"})
    assert waits.words == "It restarts when hosts 1, 2 run again"
    assert stuck.words.startswith("It restarts when host 0 runs again. Host 0 has not come back")
    assert "spec.application.restart.nonce" in stuck.words
