"""warc."""
