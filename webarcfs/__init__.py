"""webarcfs: a web archive that is a filesystem."""

__version__ = "0.1.0"
