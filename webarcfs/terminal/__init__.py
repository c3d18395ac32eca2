"""What commands show to people: progress, tables, differences, pictures.

Public: every module. Imports archive and content.
"""
