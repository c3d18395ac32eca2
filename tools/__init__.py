"""Programs for those who work on the code; nothing that is installed needs them."""
