"""Synchronises derived data with git: webarc.db, links.db, the full-text index, the feed.

Public: `recovery` (rebuilds all, or adds what is missing), `links`, `fulltext`. Runs after each publication, in the
agent, and in `webarc-agent recover`.
"""
