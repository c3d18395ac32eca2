"""Derived forms of documents: where they are kept, how XHTML is made, what a page is counted by.

Public: `derived_forms`, `tidy`, `pagefacts`. Imports of webarcfs archive and content.
"""
