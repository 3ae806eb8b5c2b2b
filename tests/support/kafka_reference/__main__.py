"""Print the page."""

import sys

from support.kafka_reference import page

if __name__ == "__main__":
    sys.stdout.write(page())
