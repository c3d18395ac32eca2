"""The stages of the pipeline, a module each; pipeline.py lists them in order."""
