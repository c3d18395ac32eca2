"""Fetching: start and watch wget, read its results, record the outcome of each URL in the frontier.

Public: `loop.capture`. Each wget is a process. A second process parses the results (`resultreader`). Everything else
runs in the job's thread. Imports system, policy, frontier, jobfolder, and of webarcfs archive, content, warc.

The URLs of a crawl: their states and outcomes, the rules by which new URLs enter, and the times of retries.

Public: `store.Frontier` (SQLite, statements in `sql/frontier/`), its `rows`, `discovery`, `quotas`, `robotscache`,
`retries`. Used by the thread of its job. Imports policy, and of webarcfs archive and content.

A job on disk: its name, its definition, its state, its batches.

Public: every module. Written by the process of the job; the agent and `status` read. Imports system and frontier.

The rules of a crawl, as pure functions: scope, traps, robots.txt, politeness, fetch status codes.

Pure: values in, values out. Public: every module. Imports archive/model, archive/config and warc.
"""
