"""fusepy."""
