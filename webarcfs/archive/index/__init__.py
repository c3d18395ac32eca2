"""The databases that derive from git, and their queries: webarc.db (documents) and links.db (links).

Public: `database`, `query`, `links_database`, `links_query`. The only folder of archive/ that knows sqlite3; the
statements lie in `sql/`. A connection belongs to the thread that opened it. Imports model, system, config.
"""
