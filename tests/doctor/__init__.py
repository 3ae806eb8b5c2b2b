"""``make test-doctor``: a real cluster and a real broker, sixteen seeded faults, each named correctly."""
