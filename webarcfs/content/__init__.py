"""The meaning of a document's bytes: charset and title, MIME type, the URLs it refers to, the links that readers see.

Public: every module. Pure, except that `mimetype` calls libmagic and `visible_lines` libgit2; safe for any thread.
"""
