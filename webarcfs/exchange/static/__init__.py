"""A folder that a browser reads without any server: the newest snapshot of each domain, its references made relative.

Public: `export.export`. `names` decides how files are called, `file_types` what a file is, `places` where a URL lies in
the folder; `targets` and `pages` rewrite documents, `drawings` cleans SVG, `own_pages` has what is not archived.
Nothing in the folder leads to the live web: links out lead to a notice, and scripts do not run, since a page could go
elsewhere by them, whatever its policy forbids. Imports archive, content, warc and exchange.
"""
