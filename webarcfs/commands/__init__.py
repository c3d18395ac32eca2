"""The commands of `webarc`, a module each, for those who read an archive."""
