"""frontier."""
