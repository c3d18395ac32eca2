"""Extractors: the text of a document, as people see it, by its MIME type.

Public: `extracting.extract` and `extracted`. Content is hostile: extractors run in a process with limits, which may be
killed at any time. The libraries for PDF and RTF, and the detector of languages, come with the extra `search`, and are
loaded when they are needed.
"""
