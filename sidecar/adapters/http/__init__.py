"""HTTP: probes and metrics on `http.address`; the JSON API and the dashboard on `web.address`."""
