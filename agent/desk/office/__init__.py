"""The pages that set an archive up: access, options, people, publications, registers.

Public: every module. As `pages/`, whose fields of forms they use. Imports what `pages/` imports, and pages.
"""
