"""Who may send requests to the web's address: Host and origin, checked before anything else.

Guarantees (G12):
- a page of another site cannot use this address through a name that it points here (DNS
  rebinding): the Host must be a loopback name or address, or the configured one;
- a browser's call comes from our own page, and `web.dashboard` decides what it may do. A browser
  marks its requests with headers that no script can remove.
"""

import ipaddress
from collections.abc import Mapping
from typing import Literal
from urllib.parse import urlsplit

from starlette.datastructures import Headers

from sidecar.adapters.http.methods import Method
from sidecar.adapters.http.refusals import Refusal
from sidecar.config import addresses

Dashboard = Literal["off", "read", "operate"]
_OWN_SITES = ("same-origin", "none")  # none: typed by the user


class Guard:
    def __init__(self, address: str, dashboard: Dashboard) -> None:
        self._parts = addresses.parse(address)
        self.dashboard = dashboard

    def check_host(self, headers: Headers) -> None:
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._is_ours(_host_name(hosts[0])):
            raise Refusal(
                "permission_denied",
                "the Host header must be a loopback name or address, or the host of web.address",
            )

    def check_call(self, headers: Headers, method: Method) -> None:
        """For calls of methods: what a browser may do is up to `web.dashboard`."""
        if not is_browser(headers):
            return
        site, origin = headers.get("sec-fetch-site", "same-origin"), headers.get("origin")
        foreign = origin is not None and urlsplit(origin).netloc != headers.get("host")
        if foreign or site not in _OWN_SITES:
            raise Refusal("permission_denied", "the call comes from a page of another site")
        if self.dashboard == "off":
            raise Refusal("permission_denied", "web.dashboard is off: no calls from browsers")
        if self.dashboard == "read" and not method.reads:
            raise Refusal(
                "permission_denied", "the dashboard is read-only: set web.dashboard to operate"
            )

    def _is_ours(self, host: str) -> bool:
        if host == "localhost" or (self._parts.host and host == self._parts.host.lower()):
            return True
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return False
        # An address, unlike a name, cannot be pointed here by somebody else.
        return address.is_loopback or self._parts.is_everywhere


def is_browser(headers: Mapping[str, str]) -> bool:
    return "sec-fetch-site" in headers or "origin" in headers


def _host_name(host: str) -> str:
    """The name or address in a Host header, without its port and brackets."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()
