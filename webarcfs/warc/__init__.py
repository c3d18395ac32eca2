"""WARC files: records, even of damaged files; their HTTP responses, decoded; the writer of a job's own file.

Public: every module. A reader belongs to the thread that opened it.
"""
