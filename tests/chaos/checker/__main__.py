"""``python -m chaos.checker FOLDER LINEARISABLE``: prints the verdict as JSON.

Exit code 1 when anything is wrong.
"""

import dataclasses
import json
import sys
from pathlib import Path

from chaos.checker.delivery import Evidence, judge
from chaos.checker.epochs import check


def main(folder: Path, program: Path) -> int:
    """Check a folder."""
    verdict = judge(Evidence.read(folder))
    problem = check(folder, program)
    sys.stdout.write(json.dumps({**dataclasses.asdict(verdict), "epochs": problem}) + "\n")
    return 0 if verdict.is_ok and problem is None else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
