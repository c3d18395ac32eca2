"""Archived pages and style sheets with other references: where these are, and how the page is put together with them.

Public: `references` (values), `html_references.of_html`, `css_references.of_css`, `assembly.rewritten`. Pure; safe for
any thread.
"""
