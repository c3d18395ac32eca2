"""The agent: crawls publications and publishes them into the archive."""
