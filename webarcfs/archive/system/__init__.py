"""The services of the operating system: locks between processes, fsync, processes, log files, copies of files, a cache.

Public: every module. `locks` and `cache` are made for several threads; the others keep no state. Imports model.
"""
