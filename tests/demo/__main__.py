"""Start: ``python -m demo``."""

from demo.story import app

app()
