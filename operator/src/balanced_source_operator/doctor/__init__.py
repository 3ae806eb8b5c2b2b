"""``balanced-source doctor``.

Finds what keeps sources from running, and says what to do about it.
"""

from balanced_source_operator.doctor.examine import examine
from balanced_source_operator.doctor.finding import Diagnosis, Fault, Level

__all__ = ["Diagnosis", "Fault", "Level", "examine"]
