"""The only home of I/O libraries. Adapters fit the ports that the steps declare."""
