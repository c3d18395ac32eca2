"""The URLs of a crawl: every one that was seen and what became of it, how new ones enter, when one is tried again.

Public: `store.Frontier` (SQLite, statements in `sql/frontier/`), `discovery`, `quotas`, `robotscache`, `retries`.
Used by the thread of its job. Imports policy, and of webarcfs archive and content.
"""
