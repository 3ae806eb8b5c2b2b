"""The hybrid source on the operator's side: its branch of the CRD, and the way to the source."""
