"""The command ``balanced-source``, which is also the kubectl plug-in ``kubectl bsrc``."""

from balanced_source_operator.cli.main import app, run

__all__ = ["app", "run"]
