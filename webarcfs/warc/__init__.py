"""WARC files: records, also of damaged files; the HTTP responses in them, decoded; the writer of a job's own file.

Public: every module. A reader belongs to the thread that opened it. Imports archive/model.
"""
