"""The line with which a runbook begins: the text of its alert, as an on-call engineer sees it."""

from typing import Any, Final

_SEVERITIES: Final = ("critical", "warning")


def head(rule: dict[str, Any]) -> str:
    """Return the line for a rule of the chart's alerts.

    Raises:
        ValueError: the rule has another severity than those of the chart.
    """
    severity = rule["labels"]["severity"]
    if severity not in _SEVERITIES:
        raise ValueError(f"severity {severity!r} of {rule['alert']}")
    after = f" for {_spelt(rule['for'])}" if "for" in rule else ""
    if "keep_firing_for" in rule:
        after += f", until it is false for {_spelt(rule['keep_firing_for'])}"
    condition = " ".join(str(rule["expr"]).split())
    fires = f"fires when this is true{after}: `{condition}`"
    return f"**{summary_of(rule)}.** Severity {severity}; {fires}"


def summary_of(rule: dict[str, Any]) -> str:
    """Return the summary of an alert, with NAMESPACE and SOURCE for its labels."""
    summary: str = rule["annotations"]["summary"]
    for label in ("namespace", "source"):
        summary = summary.replace(f"{{{{ $labels.{label} }}}}", label.upper())
    return summary


def _spelt(duration: str) -> str:
    count = int(duration.removesuffix("m"))
    return "1 minute" if count == 1 else f"{count} minutes"
