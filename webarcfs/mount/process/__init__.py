"""The process of a mount from the command line to its end: checks, privileges, the fork, logs, signals, unmounting.

Public: `program.main` (where `mount.webarcfs` begins: the compiled modules are put in front, then comes `cli`) and
`cli.umount_main`. Imports everything of mount/, and native.
"""
