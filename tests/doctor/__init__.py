"""``make test-doctor``.

A real cluster and a real broker, sixteen seeded faults, each named correctly.
"""
