"""The databases that derive from git, and their queries: webarc.db (documents) and links.db (links).

Public: `database`, `query`, `links`, `names`. The statements lie in `sql/`. A connection belongs to the thread that
opened it.
"""
