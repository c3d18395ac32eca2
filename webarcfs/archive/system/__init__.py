"""The services of the operating system: locks between processes, files, processes, signals, clocks, log files, a cache.

Public: every module. `locks` and `cache` are for several threads; the others have no state.
"""
