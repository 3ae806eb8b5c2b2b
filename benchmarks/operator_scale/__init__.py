"""How the operator scales: a real API server and broker, and stand-ins for the drivers of many sources."""
