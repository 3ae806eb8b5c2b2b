"""What is published, installed by itself."""
