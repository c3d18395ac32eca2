"""The archive as a filesystem: nodes, the shape of the mount, and the adapters that speak FUSE."""
