"""Write the pages."""

from support.reference import PAGES
from testbed.versions import CHECKOUT

for name, page in PAGES.items():
    (CHECKOUT / "docs" / "reference" / name).write_text(page(), encoding="utf-8")
