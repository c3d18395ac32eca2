"""The view as a file system of the kernel: what the kernel has been told, writing, the adapters, the process.

Public: `process/` (the commands), and `options`, the options of `-o`, which several of them read. The folders build
on one another: writing and kernel, adapters, the two adapters, process. Imports archive/ and view/.
"""
