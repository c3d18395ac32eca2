"""Who asks: persons of people.toml by password or by a trusted proxy, their sessions, and the tokens of forms.

Public: `passwords`, `guesses`, `sessions`, `tokens`, `persons`. Nothing is written to disk but hashes in people.toml.
Imports archive, gate and desk's limits.
"""
