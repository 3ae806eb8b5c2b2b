"""Observe, validate, decide: pure functions over what was seen."""
