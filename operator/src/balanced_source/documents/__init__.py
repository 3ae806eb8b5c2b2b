"""What operator and driver exchange: versioned, with a reader for every older version."""
