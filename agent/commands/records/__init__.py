"""The commands about records: shown, edited, decided about, taken from step to step; the registers.

Public: `steps.record`, `registers.register`. Imports commands (what is shared), steps, catalogue, service.
"""
