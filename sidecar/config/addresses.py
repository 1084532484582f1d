"""Checks addresses and URLs without the libraries that connect to them.

Guarantee: every function returns its argument (or its parts) or raises ValueError with a message;
messages about URLs never repeat any part of them, because URLs contain passwords.
"""

import ipaddress
import re
from dataclasses import dataclass

POSTGRES_ALLOWED = (
    "postgresql://USER:PASSWORD@HOST:PORT/DATABASE or a key=value string such as "
    "'host=db dbname=orders'"
)
REDIS_ALLOWED = (
    "redis://HOST:PORT/DB, rediss:// (TLS), unix:///PATH, "
    "redis+sentinel://HOST:PORT,HOST:PORT/SERVICE/DB "
    "or redis+cluster://HOST:PORT,HOST:PORT (also rediss+…), or empty: no cache"
)
HTTP_ALLOWED = "an http:// or https:// URL, or empty"

_SOCKET_BYTES_MAX = 107  # sun_path of Linux, without its final NUL
_HOST_NAME = re.compile(
    r"(?=.{1,253}$)[A-Za-z0-9]([A-Za-z0-9_-]*[A-Za-z0-9])?(\.[A-Za-z0-9_-]+)*\.?"
)
_SCHEME = re.compile(r"([a-z][a-z0-9+]*)://")
_PORT = re.compile(r"[1-9][0-9]{0,4}")
_BAD_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
# libpq's key=value form: a value is bare, or in single quotes with \' and \\ inside.
# Possessive (++, *+): a long string that does not fit is refused in linear time.
_CONNINFO_ITEM = re.compile(r"\s*+[a-z_]++\s*+=\s*+('(?:[^'\\]|\\.)*+'|(?:[^\s'\\]|\\.)*+)(?=\s|$)")


@dataclass(frozen=True, slots=True)
class Parts:
    """A host and a port, or a socket file."""

    host: str = ""
    port: int = 0
    socket_path: str = ""

    @property
    def is_host_name(self) -> bool:
        return bool(self.host) and _ip(self.host) is None

    @property
    def is_local(self) -> bool:
        """Whether only this machine or pod can reach it."""
        address = _ip(self.host)
        return (
            bool(self.socket_path)
            or self.host == "localhost"
            or bool(address and address.is_loopback)
        )

    @property
    def is_everywhere(self) -> bool:
        address = _ip(self.host)
        return bool(address and address.is_unspecified)


def parse(text: str) -> Parts:
    """`127.0.0.1:9401`, `[::1]:9401`, `localhost:9401` or `unix:///run/baton/api.sock`."""
    if text.startswith("unix:"):
        return Parts(socket_path=_socket_path(text))
    host, colon, port = text.rpartition(":")
    if not colon or not host:
        raise ValueError("has no host or no port")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
        if not isinstance(_ip(host), ipaddress.IPv6Address):
            raise ValueError("is not an IPv6 address")
    elif ":" in host:
        raise ValueError("needs brackets around its IPv6 address")
    elif not _is_host(host):
        raise ValueError("is not an address")
    return Parts(host=host, port=_port(port))


def postgres_url(text: str) -> str:
    """A Postgres URL or conninfo string, or empty: `rules` requires it where it is needed."""
    match = _SCHEME.match(text)
    if match is None:
        return _conninfo(text)
    if match[1] not in ("postgresql", "postgres"):
        raise ValueError("is not a Postgres URL")
    if " " in text.strip():
        raise ValueError("holds a space (it is written %20)")
    authority = re.split(r"[/?]", text[match.end() :], maxsplit=1)[0]
    _authority(authority, socket_hosts=True)
    _percent(text)
    return text


def _conninfo(text: str) -> str:
    position, end = 0, len(text.rstrip())
    while position < end:
        item = _CONNINFO_ITEM.match(text, position)
        if item is None:
            raise ValueError("is neither a Postgres URL nor a key=value string")
        position = item.end()
    return text


def redis_url(text: str) -> str:
    """One of the forms of REDIS_ALLOWED, or empty."""
    if not text:
        return text
    match = _SCHEME.match(text)
    scheme = match[1] if match else ""
    rest = text[len(scheme) + 3 :].partition("?")[0]
    if scheme == "unix":
        if not rest.rpartition("@")[2].startswith("/"):
            raise ValueError("names no absolute socket path")
        return text
    if scheme not in ("redis", "rediss") and not re.fullmatch(
        r"rediss?\+(sentinel|cluster)", scheme
    ):
        raise ValueError("is not a Redis URL")
    authority, _, path = rest.partition("/")
    hosts = _authority(authority, socket_hosts=False)
    _redis_path(scheme.partition("+")[2], path, hosts)
    _percent(text)
    return text


def _redis_path(flavour: str, path: str, hosts: int) -> None:
    if flavour == "":
        if hosts != 1 or not re.fullmatch(r"[0-9]{0,4}", path):
            raise ValueError("is not one host and at most a database number")
    elif flavour == "sentinel":
        if not re.fullmatch(r"[A-Za-z0-9._-]+(/[0-9]{1,4})?", path):
            raise ValueError("names no Sentinel service after the hosts")
    elif path not in ("", "0"):
        raise ValueError("names a database, which a Redis Cluster does not have")


def http_url(text: str) -> str:
    """A URL to call, or empty."""
    if not text:
        return text
    match = re.match(r"https?://", text)
    if match is None:
        raise ValueError("is not an http:// or https:// URL")
    if re.search(r"\s", text):
        raise ValueError("holds white space")
    if not text.isascii():
        raise ValueError("holds a character that is not ASCII (it is written as % and digits)")
    authority = re.split(r"[/?#]", text[match.end() :], maxsplit=1)[0]
    if _authority(authority, socket_hosts=False) != 1 or not authority:
        raise ValueError("names no host")
    return text


def _authority(authority: str, *, socket_hosts: bool) -> int:
    """How many hosts `user:password@host:port,host:port` names."""
    user, at, hosts = authority.partition("@")
    if "@" in hosts:
        raise ValueError("has two @ (in a password it is written %40)")
    names = (hosts if at else user).split(",")
    for name in names:
        _host_and_port(name, empty_allowed=socket_hosts)
    return len(names)


def _host_and_port(text: str, *, empty_allowed: bool) -> None:
    host, port = text, ""
    if text.startswith("["):
        host, bracket, port = text[1:].partition("]")
        ends = bracket and port[:1] in ("", ":")
        if not ends or not isinstance(_ip(host), ipaddress.IPv6Address):
            raise ValueError("has an invalid IPv6 address")
        port = port.removeprefix(":")
    else:
        host, _, port = text.partition(":")
        if host and not _is_host(host) and not host.startswith("%2F"):
            raise ValueError("has an invalid host name")
    if not host and not empty_allowed:
        raise ValueError("names no host")
    if port:
        _port(port, "has an invalid port (in a password / @ : are written %2F %40 %3A)")


def _percent(text: str) -> None:
    if _BAD_PERCENT.search(text):
        raise ValueError(
            "has a % that is not followed by two hexadecimal digits (% itself is written %25)"
        )


def _port(text: str, sentence: str = "has a port outside of 1 to 65535") -> int:
    if not _PORT.fullmatch(text) or int(text) > 65535:
        raise ValueError(sentence)
    return int(text)


def _socket_path(text: str) -> str:
    path = text.removeprefix("unix://")
    if not path.startswith("/") or len(path) < 2 or not path.isprintable():
        raise ValueError("names no absolute socket path")
    if len(path.encode()) > _SOCKET_BYTES_MAX:
        raise ValueError(f"has a path of more than {_SOCKET_BYTES_MAX} bytes")
    return path


def _is_host(text: str) -> bool:
    """A host name or an IPv4 address; digits and dots alone must be a whole IPv4 address."""
    if re.fullmatch(r"[0-9.]+", text):
        return _ip(text) is not None
    return _HOST_NAME.fullmatch(text) is not None


def _ip(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None
