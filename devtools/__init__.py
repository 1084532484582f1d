"""Tools for development: real servers on this machine, and the demo.

Not part of the wheel `baton-sidecar` or the image. `sidecar` never imports it, except for the
command `baton demo`, which does so when it is called.
"""
