"""The URLs of a crawl: their states and outcomes, the rules by which new URLs enter, and the times of retries.

Public: `store.Frontier` (SQLite, statements in `sql/frontier/`), its `rows`, `discovery`, `quotas`, `robotscache`,
`retries`. Used by the thread of its job. Imports policy, and of webarcfs archive and content.
"""
