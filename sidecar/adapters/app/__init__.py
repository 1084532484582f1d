"""The app next to this sidecar: reached by callback, or over a stream that the app opens."""
