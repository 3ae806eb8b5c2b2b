"""A short, fixed part of `make chaos`, and the program that its checker uses."""
