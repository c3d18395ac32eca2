"""What people do with snapshots: enter, decide, describe, ask for steps. Commands and the desk call the same functions.

Public: `records` (finding one), `deciding`, `entering`, `stepping`. Each function takes the person who acts, whose
right its caller has asked for, or asks for it. Imports archive, and agent's steps, service and what they import.
"""
