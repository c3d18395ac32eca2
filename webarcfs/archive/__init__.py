"""The archive, on disk and in memory. Knows neither FUSE nor wget.

Public: its folders. Nothing lies in this folder itself.
"""
