"""The meaning of a document's bytes: charset and title, MIME type, the URLs it points to, the links that readers see.

Public: every module. Pure, except that `mimetype` asks libmagic; safe in any thread. Imports archive/model and the
values of archive/index/links_words.
"""
