"""Tests of what leaves an archive, and of what comes back."""
