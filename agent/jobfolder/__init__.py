"""A job on disk: its name, its definition, its state, its batches.

Public: every module. Written by the process of the job; the agent and `status` read. Imports system and frontier.
"""
