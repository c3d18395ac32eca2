"""The settings of webarc.toml and of the command line, and the place of each file in an archive.

Public: `settings` (all settings, checked as a whole), `directory` (`Archive`: the paths; makes and opens archives; SQL
and schemas that come with webarcfs). Read-only values, for any thread.
"""
