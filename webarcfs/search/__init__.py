"""Full text: words in every state of the archive, by Tantivy, for those who may see them.

Public: `searching.Searcher` and its `SearchQuestion`; `index.IndexWriter` for the agent's indexer. Any thread may have
a searcher of its own. The libraries come with the extra `search`: whoever imports this folder looks first whether they
are there.
"""
