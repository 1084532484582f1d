# Generated from baton/v1/job_types.proto. DO NOT EDIT!
# Types for grpc.aio, which the plugin of grpcio-tools leaves out.
from collections.abc import AsyncIterator, Awaitable

import grpc.aio

from . import job_types_pb2 as pb
