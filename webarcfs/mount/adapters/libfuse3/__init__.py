"""libfuse3."""
