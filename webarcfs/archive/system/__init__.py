"""The services of the operating system: locks between processes, fsync, processes,
privileges, systemd, log files, copies of files, a cache.

Public: every module. `locks` and `cache` are for several threads; the others have no state. Imports model.

The agent's interface to the machine: processes, signals, clocks, small files, logs, progress.

Public: every module. Imports of webarcfs archive/model and archive/system.
"""
