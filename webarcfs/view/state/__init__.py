"""The state that is shown of each domain: its commit in git, the additions on top of it, the answers to conditions.

Public: `domain_states` (states taken over, and whether they moved), `domain_reader`, `overlay`, `ownership`,
`query_answers`. Request threads read; the view's thread takes over new states; the committer settles additions.
Imports archive/ and view/.
"""
