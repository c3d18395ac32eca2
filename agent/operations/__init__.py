"""What people do with crawls: enter, decide, describe, ask for steps. Commands and the desk call the same functions.

Public: every module. Each function takes the person who acts, whose right its caller has asked for, or asks for it.
"""
