"""Synchronises derived data with git: webarc.db, links.db, the feed.

Public: `recovery` (rebuilds all, or adds what is missing), `linksync`, `metadata`, `links`. Runs after each
publication, in the agent, and in `webarc-agent recover`. Imports of webarcfs archive and content.
"""
