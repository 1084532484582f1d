"""The sidecar's own gRPC API: one module per service."""
