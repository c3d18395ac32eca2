"""Fetching: start and watch wget, read its results, record the outcome of each URL in the frontier.

Public: `loop.capture`. Each wget is a process. A second process parses the results (`resultreader`). Everything else
runs in the job's thread. Imports system, policy, frontier, jobfolder, and of webarcfs archive, content, warc.
"""
