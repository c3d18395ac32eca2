"""The long tests of `make soak`: what CI runs in a small form, at full length."""
