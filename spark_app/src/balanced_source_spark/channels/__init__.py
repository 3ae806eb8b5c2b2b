"""How a driver and whoever assigns splits exchange their documents."""
