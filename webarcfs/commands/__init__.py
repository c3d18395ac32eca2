"""The commands of `webarc`, a module each, for readers of an archive.

Public: `cli`, the entry point. `cli` reads the command line and turns errors into exit codes. Imports archive/ and
client/.

What commands show to people: progress, tables, differences, pictures.

Public: every module. Imports archive and content.
"""
