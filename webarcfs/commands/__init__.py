"""The commands of `webarc`, a module each, for readers of an archive.

Public: `cli`, the entry point: it reads the command line and turns errors into exit codes. `output` shows progress,
tables, differences and pictures to people; `webarc-agent` uses it, too.
"""
