"""Label selectors that the settings and the chart accept, and texts that both reject."""

from typing import Final

VALID: Final = (
    "balancedsource.io/shard=a",
    "balancedsource.io/shard==a",
    "balancedsource.io/shard!=a",
    "balancedsource.io/shard in (a,b)",
    "balancedsource.io/shard notin ( a , b-2 )",
    "balancedsource.io/shard",
    "!balancedsource.io/shard",
    "team=",
    "shard=a,team in (x, y) , !legacy",
    "kubernetes.io/metadata.name in (jobs,more-jobs)",
)
"""Selectors as `kubectl get -l` takes them."""

INVALID: Final = (
    "=a",
    "shard=a,",
    "shard=a b",
    "shard in a",
    "shard in ()",
    "shard in (a",
    "shard=a;team=b",
    "shard=-a",
    "-shard=a",
    "Example.org/shard=a",
    "a..b/shard=a",
    "a/b/c=d",
    "shard>1",
    "shard=" + "x" * 64,
    "x" * 64,
    "shard=a&watch=true",
    "shard=a\n",
)
