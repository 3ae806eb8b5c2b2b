"""Manifests of examples/, each run on one machine."""
