"""The state of each domain that the mount shows: its commit in git, the additions on top of it, answers to conditions.

Public: `domain_states` (taking over states, detecting moves), `domain_reader`, `overlay`, `ownership`,
`query_answers`. Request threads read; the view's thread takes over new states; the committer settles additions.
Imports archive/ and view/.
"""
