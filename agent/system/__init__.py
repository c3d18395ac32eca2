"""The agent's interface to the machine: processes, signals, clocks, small files, logs, progress.

Public: every module. Imports of webarcfs archive/model and archive/system.
"""
