"""Manifests of everything that the operator makes."""
