"""Archived pages and style sheets with other references: where these stand, and the page put together anew.

Public: `references` (values), `html_references.of_html`, `css_references.of_css`, `assembly.rewritten`. Pure; safe for
any thread.
"""
