"""`make demo`: the product at work on real parts, with a proof at the end."""
