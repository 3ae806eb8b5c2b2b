"""Sentences that explain decisions: what is so, and what to do where the autoscaler cannot help."""

from collections.abc import Sequence
from typing import Final

from balanced_source.reasons import Reason
from balanced_source_operator.controller.autoscaling.needs import Load
from balanced_source_operator.controller.autoscaling.policy import Policy
from balanced_source_operator.controller.refusals import refusal_cause

LONGEST_TIME: Final = 86_400.0
"""Seconds up to which a backlog is told in time. Where little arrives, time says nothing."""

SLOW: Final = 10.0
"""Records per second below which a rate has two significant digits."""


def bounds(policy: Policy, wanted: int) -> str:
    """Return why a number of readers outside the bounds is changed."""
    return (
        f"parallelism {wanted} is outside minReaders {policy.min_readers} and maxReaders"
        f" {policy.max_readers}"
    )


def measuring() -> str:
    """Return what is waited for at the beginning."""
    return (
        "The load is being measured; the first decision needs reports of at least 5 s, and one to"
        " have fewer readers needs the ends of two micro-batches"
    )


def more(load: Load, capacity: float, wanted: int, readers: int) -> str:
    """Return why there are more readers."""
    return f"{_rates(load, capacity)}: {_readers(wanted, 'is', 'are')} too few, {readers} suffice"


def uneven(load: Load, wanted: int, readers: int) -> str:
    """Return why there are more readers although their number is not the problem."""
    return (
        f"Splits are unevenly loaded: {load.hottest_split} gets {load.hottest:.0%} of the records,"
        f" so {wanted} readers fall behind that could carry a balanced load; {readers} suffice. Use"
        " strategy LoadAware to need fewer"
    )


def hot_split(load: Load, capacity: float) -> str:
    """Return why more readers do not help: one split is too much for any reader."""
    return (
        f"Split {load.hottest_split} gets {_number(load.hottest * load.arrival)} records/s, and"
        f" one reader processes {_number(capacity)}: more readers do not help. Spread its keys over"
        " more partitions, or set pipeline.maxRecordsPerReader so that several readers share it"
    )


def at_maximum(
    load: Load, capacity: float, readers: int, most: int, *, is_certain: bool = True
) -> str:
    """Return why the lag grows although the autoscaler does all it may.

    Args:
        load: that is too much.
        capacity: of a reader.
        readers: number of readers that there will be.
        most: number of readers that there may be.
        is_certain: whether the last increase has helped, so that further ones would.
    """
    rates = _rates(load, capacity)
    if not load.is_shared and readers >= load.splits:
        return (
            f"{rates}: each reader has one split, so more readers do not help. Add partitions, or"
            " set pipeline.maxRecordsPerReader so that several readers share a split"
        )
    if readers < most:
        return (
            f"{rates}: with {most} readers the busiest one would have as many splits as with"
            f" {readers}. Raise spec.autoscaling.maxReaders"
        )
    advice = ". Raise spec.autoscaling.maxReaders" if is_certain else ""
    return f"{rates}: maxReaders {most} is too few{advice}"


def downstream(wanted: int, in_source: float | None) -> str:
    """Return why no readers are added: the last increase changed nothing.

    Args:
        wanted: number of readers after it.
        in_source: see `Interval`.
    """
    return (
        f"The last increase to {wanted} readers hardly raised the throughput, so something else is"
        f" the limit. {_limit(in_source)}. See also whether all executors have started. It is"
        " tried again 10 minutes after the first such increase, and then every 6 hours"
    )


def _limit(in_source: float | None) -> str:
    """Return where readers spend their time, and what to check."""
    if in_source is None:
        return "Check the sink, the transformation and the servers of the source"
    percent = round(100 * in_source)
    if 2 * in_source >= 1:
        return (
            f"Readers spend {percent} % of their time in the source: check its servers and the"
            " network"
        )
    return (
        f"Readers spend {100 - percent} % of their time waiting for Spark to take their records:"
        " check the sink and the transformation"
    )


def catching_up(load: Load, wanted: int, adopted: int) -> str:
    """Return why nothing changes while there is a backlog.

    Args:
        load: that is worked off.
        wanted: number of readers that there should be.
        adopted: number of readers that read now.
    """
    waiting = f", and {wanted} are asked for" if wanted != adopted else ""
    return f"{_readers(adopted, 'is', 'are')} catching up{waiting}; {_backlog(load)}"


def awaited(load: Load, capacity: float | None, wanted: int) -> str:
    """Return why there are not more readers yet, shortly after an increase."""
    readers = _readers(wanted, "suffices", "suffice")
    return f"{_rates(load, capacity)}: whether {readers} is being measured"


def keeping_up(load: Load, readers: int, *, is_tried: bool = False, is_late: bool = False) -> str:
    """Return why nothing changes although much is unread all the time.

    Args:
        load: that is carried.
        readers: number of readers.
        is_tried: whether it was tried with more.
        is_late: whether they are further behind than `maxLag`, which may still grow.
    """
    usual = "" if is_late else " as always"
    tried = ", also with more readers" if is_tried else ""
    return (
        f"{_readers(readers, 'keeps', 'keep')} up with {_number(load.arrival)} records/s,"
        f" {_backlog(load)}{usual}: micro-batches are long{tried}. See how long the sink's"
        " commit takes"
    )


def limited(load: Load, wanted: int) -> str:
    """Return why nothing changes although records are unread and readers have time."""
    return (
        f"{_readers(wanted, 'waits', 'wait')} for the trigger interval, {_backlog(load)}: each"
        " micro-batch reads as much as its limit allows, so another number of readers does not"
        " help. Raise limits.maxOffsetsPerTrigger, or remove it"
    )


def held_back(load: Load, wanted: int) -> str:
    """Return why nothing changes although much is unread."""
    return (
        f"{load.held_back} unread records wait for splits or sources that are further behind in"
        f" event time (alignment), so another number of readers does not help: {wanted} now"
    )


def one_is_catching_up(load: Load) -> str:
    """Return why there are not more readers although readers are far behind."""
    return (
        f"The backlog is mostly in split {load.hottest_split}, and one reader works it off; more"
        " readers do not help"
    )


def one_suffices(load: Load, capacity: float) -> str:
    """Return why there are not more readers although the busiest one is above the target."""
    return (
        f"Split {load.hottest_split} gets {_number(load.hottest * load.arrival)} records/s, which"
        f" one reader carries, as it processes {_number(capacity)}; more readers do not relieve it"
    )


def within(load: Load, capacity: float | None, wanted: int) -> str:
    """Return why nothing changes."""
    return f"{_rates(load, capacity)}: {_readers(wanted, 'suffices', 'suffice')}"


def delayed(load: Load, wanted: int, fewest: int) -> str:
    """Return why there are not fewer readers yet."""
    return (
        f"{_number(load.arrival)} records/s arrive: {fewest} of {wanted} readers would suffice. The"
        " number is reduced when that has lasted for scaleDownDelay, and when it keeps within 4"
        " changes of direction an hour"
    )


def probe_delayed(load: Load, wanted: int) -> str:
    """Return why it is not tried out yet whether fewer readers suffice."""
    return (
        f"{_number(load.arrival)} records/s arrive, and what one reader can process is unknown:"
        f" {_readers(wanted, 'has', 'have')} no backlog. Fewer are tried when that has lasted for"
        " scaleDownDelay, and when the number keeps within 4 changes of direction an hour"
    )


def fewer(load: Load, capacity: float | None, wanted: int, readers: int) -> str:
    """Return why there are fewer readers."""
    return f"{_rates(load, capacity)}: {readers} of {wanted} readers suffice"


def probing(wanted: int, readers: int) -> str:
    """Return why there are fewer readers although no one knows whether they suffice."""
    return (
        f"{wanted} readers have had no backlog for scaleDownDelay, and what one can process is"
        f" unknown: {readers} are tried"
    )


def silent(hosts: Sequence[str], wanted: int) -> str:
    """Return why no readers are taken away: some hosts do not say how far behind they are."""
    one, many = f"Host {hosts[0]} has", f"Hosts {', '.join(hosts)} have"
    lag = "its lag" if len(hosts) == 1 else "their lag"
    return (
        f"{one if len(hosts) == 1 else many} not reported {lag}, so parallelism stays at"
        f" {wanted}: readers are only added, as far as the other hosts need them. See status.hosts,"
        " and the logs of these hosts' driver pods"
    )


def unknown(wanted: int) -> str:
    """Return why nothing is decided: the driver does not say how far behind it is."""
    return (
        f"The driver has not reported its lag, so parallelism stays at {wanted}. See the condition"
        " Ready, and the log of the driver's pod"
    )


def not_measurable(wanted: int, kind: str) -> str:
    """Return why nothing is decided: what is unread does not say how much there is to do."""
    return (
        f"The load of a source of kind {kind} is unknown: it does not count unread records, or its"
        f" readers ask for splits. So parallelism stays at {wanted}. Remove spec.autoscaling, and"
        " set parallelism"
    )


def manual(wanted: int) -> str:
    """Return why nothing is decided: readers that are added would have nothing to do."""
    return (
        "spec.assignment.rebalance.mode is Manual, so readers that are added would get no splits."
        f" parallelism stays at {wanted}. Use OnRescale or Drift, or remove spec.autoscaling"
    )


def refused(readers: int, error: str) -> str:
    """Return that a decision could not be carried out."""
    reason, advice = refusal_cause(error)
    if reason is Reason.PERMISSION_MISSING:
        advice = (
            "Grant patch on balancedsources/scale to the operator: install the roles of the Helm"
            " chart"
        )
    return (
        f"The API server refused to change parallelism to {readers}: {error.rstrip('.')}. {advice}"
    )


def fight(found: int | None, readers: int) -> str:
    """Return that something else changes the number of readers, too."""
    return (
        f"Another client keeps changing parallelism, last to {found}, and spec.autoscaling undoes"
        f" it: {readers} readers now. Delete the HorizontalPodAutoscaler or the ScaledObject of"
        " this source, leave parallelism out of applied manifests, or remove spec.autoscaling"
    )


def _rates(load: Load, capacity: float | None) -> str:
    """Return the two rates that everything follows from."""
    backlog = f", {_backlog(load)}" if load.has_backlog else ""
    # A lower bound is no capacity: an idle reader would seem to process nothing.
    processed = (
        "what one reader can process is unknown"
        if capacity is None
        else f"one reader processes {_number(capacity)}"
    )
    return f"{_number(load.arrival)} records/s arrive{backlog}, and {processed}"


def _backlog(load: Load) -> str:
    """Return how much is unread: in the time in which it has arrived, if that says anything."""
    if load.behind < LONGEST_TIME:
        return f"{load.behind:.0f} s behind"
    return f"{load.unread} records unread"


def _readers(number: int, one: str, many: str) -> str:
    return f"1 reader {one}" if number == 1 else f"{number} readers {many}"


def _number(rate: float) -> str:
    """Return a rate in words."""
    return f"{rate:.2g}" if 0 < rate < SLOW else f"{rate:.0f}"
