"""Kinesis on the operator's side: the branch of the CRD, and the way from it to the source."""
