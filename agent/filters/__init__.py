"""Filter modules that come with webarcfs (/Fi-1/)."""
