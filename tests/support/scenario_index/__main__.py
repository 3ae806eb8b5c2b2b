"""Print the page; how many scenarios have a test goes to the standard error."""

import sys

from support.scenario_index import collect, page

if __name__ == "__main__":
    found = collect()
    sys.stdout.write(page(found))
    sys.stderr.write(f"{len({f.scenario for f in found})} scenarios have a test\n")
