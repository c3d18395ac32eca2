"""The values that all other folders share: errors, URLs, paths of ARCs, metadata, additions, commit messages.

Pure: values in, values out; no file, no clock but `metadata.now`, no thread. Public: every module. Safe for any thread.
Imports the standard library and `idna`.
"""
