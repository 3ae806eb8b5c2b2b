"""The line with which a runbook begins: the text of its alert, as an on-call engineer sees it."""

from typing import Any, Final

_SEVERITIES: Final = ("critical", "warning")


def head(rule: dict[str, Any]) -> str:
    """Return the line for a rule of the chart's alerts.

    Raises:
        ValueError: the rule has another severity than those of the chart.
    """
    severity, summary = rule["labels"]["severity"], rule["annotations"]["summary"]
    if severity not in _SEVERITIES:
        raise ValueError(f"severity {severity!r} of {rule['alert']}")
    for label in ("namespace", "source"):
        summary = summary.replace(f"{{{{ $labels.{label} }}}}", label.upper())
    after = f" for {_spelt(rule['for'])}" if "for" in rule else ""
    condition = " ".join(str(rule["expr"]).split())
    return f"**{summary}.** Severity {severity}; fires when this is true{after}: `{condition}`"


def _spelt(duration: str) -> str:
    count = int(duration.removesuffix("m"))
    return "1 minute" if count == 1 else f"{count} minutes"
