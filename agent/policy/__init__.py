"""The rules of a crawl, as pure functions: scope, traps, robots.txt, politeness, fetch status codes.

Pure: values in, values out. Public: every module. Imports archive/model, archive/config and warc.
"""
