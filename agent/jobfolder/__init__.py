"""jobfolder."""
