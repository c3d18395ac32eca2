"""The archive, on disk and in memory. Knows neither FUSE nor wget.

The folders build on one another in this order: model, system, config, git, document, index, journal, history, commit,
repair. Nothing lies in this folder itself. Imports nothing of webarcfs outside it.
"""
