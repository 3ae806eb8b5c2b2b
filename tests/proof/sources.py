"""The sources that are explored, and the splits that they begin with."""

from balanced_source.api import SplitId
from balanced_source.assigners import STRATEGIES
from balanced_source.connectors.kafka import EARLIEST, LATEST, KafkaSource, OnDataLoss
from balanced_source.connectors.kafka.subscriber import TopicList, TopicPattern
from proof.values import Setting
from support.world import kafka_source


def splits_of(setting: Setting) -> list[SplitId]:
    """Returns the splits that exist at first: dealt over clusters, then over two topics."""
    names = setting.clusters
    places = [divmod(number, len(names)) for number in range(setting.splits)]
    return [(names[place], "ao"[number % 2], number // 2) for number, place in places]


def scopes_of(variant: tuple[str, ...], *, are_read: bool = True) -> tuple[str, ...]:
    """Returns the clusters that a variant reads, or those that it may read on later."""
    return tuple(name.removeprefix("-") for name in variant if name.startswith("-") is not are_read)


def source_of(setting: Setting, variant: tuple[str, ...]) -> KafkaSource:
    """Returns one variant of the source that is explored."""
    inactive = scopes_of(variant, are_read=False)
    return kafka_source(
        *scopes_of(variant),
        inactive=kafka_source(*inactive).clusters if inactive else (),
        assigner=STRATEGIES[setting.strategy](),
        retention=setting.retention,
        discovery_interval=300.0 if setting.is_periodic else None,
        starting_offsets=LATEST if setting.begins_latest else EARLIEST,
        stopping_offsets=LATEST if setting.is_bounded else None,
        on_data_loss=OnDataLoss.CONTINUE if setting.may_lose else OnDataLoss.FAIL,
        subscriber=TopicList(setting.names) if setting.names else TopicPattern(".*"),
    )
