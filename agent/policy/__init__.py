"""What a crawl may do, decided without doing it: scope, traps, robots.txt, politeness, the numbers of outcomes.

Pure: values in, values out. Public: every module. Imports archive/model.
"""
