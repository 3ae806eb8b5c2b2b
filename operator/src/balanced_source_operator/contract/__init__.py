"""What the operator half of a connector is made of: base classes of the spec's models, messages, and its contract."""
