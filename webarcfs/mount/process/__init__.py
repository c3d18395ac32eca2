"""The process of a mount from the command line to its end: checks, privileges, the fork, logs, signals, unmounting.

Public: `program.main` (entry point of `mount.webarcfs`: it prefers the compiled modules, then calls `cli`) and
`cli.umount_main`.
"""
