"""How the commands of the pages are run in `support.page_world`.

What stands for their placeholders, and which of them only a dry run or no run at all shows.
"""

import re
from collections.abc import Mapping
from typing import Final

from support.page_commands import Command, Outcome

PLACEHOLDERS: Final = {
    r"(?<![$\w\"])NAMESPACE\b(?!=)": "jobs",
    r"(?<![$\w\"])NAME\b(?!=)": "orders",
    r"\bAPPLICATION\b": '"$(kubectl get bsrc orders -o jsonpath={.status.application.name})"',
    r"\bSERVICEACCOUNT\b": "spark",
    r"\bFILE\b": "orders.yaml",
    r"<former uid>": "former",
    r"-n shop\b": "-n jobs",
    r" --watch\b": "",
}
"""Regular expression → what it stands for; the source `orders` in the namespace `jobs`."""

DRY_RUN: Final = (
    r"^kubectl delete ",
    r"^kubectl apply -f documents",
    r"^kubectl (label|annotate) crd ",
    r"former-uid=",
    r"paused=true",
    r"restart.*nonce",
)
"""Commands that would end what other pages look at: the API server checks them with
`--dry-run=server`. The tests of their effects run most of them."""

MAY_PRINT_NOTHING: Final = {
    r"spark-role=executor": "a stand-in driver has no executors",
    r"RestartPending": "nothing is pending here",
    r"component=test": "the pod of `helm test` exists only after that command",
    r"^kubectl get hpa ": "no source here has another autoscaler",
    r"disableConfigMap": "all applications here are of this release",
}
"""Regular expression → why the command prints nothing here."""

MAY_FAIL: Final = {
    r"--previous": "no container was restarted here; a test restarts one and runs the page again",
}
"""Regular expression → why the command may fail here."""

NOT_RUN: Final = {
    r"^make ": "targets of the checkout, not of a user",
    r"^docker ": "there is no container engine here; `make e2e` builds the images by other means",
    r"^pip ": "tests/integration/packaging installs the wheels",
    r"^balanced-source run": "tests/integration/examples and tests/integration/spark run it",
    r"^helm (install|upgrade|get) ": "tests/integration/chart installs the chart as the pages say",
    r"^helm test": "tests/integration/chart runs it",
    r"^helm template \.": "the reader's own chart",
    r"^kubectl create namespace ": "it is there already; tests/integration/chart makes it",
    r"^kubectl exec ": "the process node has no exec; the story on real pods runs it",
    r"^kubectl port-forward ": "the process node has no port-forward",
    r"^kubectl get -l$": "names an option in a sentence",
    r"^kafka-transactions\.sh ": "a program of Kafka, for a transaction that hangs",
}
"""Regular expression → why the command cannot run here."""


def reason(command: Command) -> str:
    """Return why a command is not run; empty if it is."""
    return next((why for key, why in NOT_RUN.items() if re.search(key, command.text)), "")


def filled(command: Command, *, metrics_port: int) -> str:
    """Return the command as it is run, where drivers serve metrics on this port.

    The API server refuses to connect to pods on loopback addresses, which are those of the process
    node, so the driver itself is asked for its metrics.
    """
    text = command.text
    for placeholder, value in PLACEHOLDERS.items():
        text = re.sub(placeholder, value, text)
    if any(re.search(key, text) for key in DRY_RUN):
        text = f"{text.partition(' #')[0]} --dry-run=server"
    return re.sub(
        r"kubectl get --raw \"[^\"]*:8090/proxy/metrics\"",
        f"curl --silent --fail http://127.0.0.1:{metrics_port}/metrics",
        text,
    )


def failure(command: Command, outcome: Outcome) -> str:
    """Return what is wrong with what a command did; empty if nothing is."""
    where = f"docs/{command.page}:{command.line}: {command.text}\n"
    if outcome.code and not _is_in(MAY_FAIL, command):
        return f"{where}ended with exit code {outcome.code}\n{outcome.out[-2000:]}{outcome.err}"
    may_be_empty = {**MAY_FAIL, **MAY_PRINT_NOTHING, r"^NAMESPACE=": "sets variables"}
    if not outcome.out.strip() and not _is_in(may_be_empty, command):
        return f"{where}printed nothing\n{outcome.err}"
    return ""


def _is_in(table: Mapping[str, str], command: Command) -> bool:
    return any(re.search(key, command.text) for key in table)
