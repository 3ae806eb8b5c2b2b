"""How a driver and the program that assigns splits exchange their documents."""
