"""The view as a file system of the kernel: the kernel's caches, the adapters, the process.

Public: `process/` (the commands), and `options`, the options of `-o`, which several folders read.
"""
