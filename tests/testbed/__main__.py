"""`python -m testbed`."""

from testbed.cli import app

app()
