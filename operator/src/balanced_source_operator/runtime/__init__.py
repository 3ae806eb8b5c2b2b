"""Does what was decided: one task per source."""
