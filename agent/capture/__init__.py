"""Fetching: wget is started and watched, its results are read, the frontier learns what became of each URL.

Public: `loop.capture`. wget runs in processes of its own; results are parsed in a second process (`resultreader`);
everything else runs in the job's thread. Imports system, policy, frontier, jobfolder, and of webarcfs archive,
content, warc.
"""
