"""After the enumerator state was lost: how hosts come to register again."""

from support.stage import Stage


def test_the_first_epoch_of_a_lineage_makes_hosts_register_while_no_broker_answers() -> None:
    """It gives nothing to anybody, and no one adopts it.

    Without it their positions would wait for the broker.
    """
    stage = Stage(readers=2, hosts=1).topic("t", 4).running()
    before = (dict(stage.owners), stage.positions())
    stage.state_lost().cluster_down("c")

    published = stage.watch(stage.operator_starts)

    assert [(a.lineage, a.owners, a.incarnations) for a in published] == [(2, {}, {"0": 0})]
    stage.adopts()
    assert (stage.owners, stage.positions()) == ({}, {})
    assert stage.state.hosts["0"].incarnation == 1, "the host has reported in the new lineage"
    assert stage.state.retained == before[0].keys()

    stage.adopts().discovers().adopts()
    assert (stage.owners, stage.positions()) == before
