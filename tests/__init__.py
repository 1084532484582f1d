"""Tests start processes from a process that speaks gRPC, whose handlers can hang in a fork."""

import os

# gRPC's core reads it when its first channel or server is made; nothing here forks without exec.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
