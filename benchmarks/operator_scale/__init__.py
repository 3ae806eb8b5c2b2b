"""How the operator scales.

A real API server and broker, and stand-ins for the drivers of many sources.
"""
