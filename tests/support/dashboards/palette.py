"""Colours that people with any colour vision can tell apart (Okabe and Ito, 2008)."""

from typing import Final

BLUE: Final = "#0072B2"
SKY: Final = "#56B4E9"
GREEN: Final = "#009E73"
YELLOW: Final = "#F0E442"
ORANGE: Final = "#E69F00"
VERMILION: Final = "#D55E00"
PURPLE: Final = "#CC79A7"
GREY: Final = "#999999"

SERIES: Final = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION, YELLOW, GREY)
"""Colours of the series of a panel, in their order."""

GOOD: Final = SKY
BAD: Final = VERMILION
NEUTRAL: Final = GREY
