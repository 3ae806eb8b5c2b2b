"""What the operator half of a connector is made of.

Base classes of the spec's models, messages, and its contract.
"""
