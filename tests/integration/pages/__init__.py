"""What the pages tell people to type, typed."""
