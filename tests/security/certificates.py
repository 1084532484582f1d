"""Certificates of an authority that exists for one test."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Certificate:
    file: Path
    key: Path


class Authority:
    """Signs certificates; `file` is what a client has to trust."""

    def __init__(self, directory: Path, name: str) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self.file, self._key = directory / "ca.pem", directory / "ca.key"
        _openssl("req", "-x509", *_NEW_KEY, "-days", "2", "-subj", f"/CN={name}",
                 "-keyout", self._key, "-out", self.file)  # fmt: skip

    def certificate(self, alternative_name: str) -> Certificate:
        """For a server of this name, such as `IP:127.0.0.1` or `DNS:db`."""
        stem = self._directory / alternative_name.replace(":", "-")
        made = Certificate(stem.with_suffix(".pem"), stem.with_suffix(".key"))
        request, extension = stem.with_suffix(".csr"), stem.with_suffix(".ext")
        extension.write_text(f"subjectAltName={alternative_name}\n")
        _openssl("req", *_NEW_KEY, "-subj", "/CN=server", "-keyout", made.key, "-out", request)
        signed = ("-CA", self.file, "-CAkey", self._key, "-CAcreateserial", "-days", "2")
        _openssl("x509", "-req", "-in", request, *signed, "-extfile", extension, "-out", made.file)
        return made


_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


def _openssl(*arguments: str | Path) -> None:
    ended = subprocess.run(["openssl", *arguments], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
