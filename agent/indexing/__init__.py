"""What derives from git, brought up to it: webarc.db, links.db, the feed.

Public: `recovery` (all of it, or what is behind), `linksync`, `metadata`, `links`. Runs after each publication, in
the agent, and in `webarc-agent recover`. Imports of webarcfs archive and content.
"""
