"""A local certificate authority, for phones in the same network, and the addresses at which they reach this machine.

The user installs its certificate on a device once. It can only sign for private addresses, names of local networks, and
the names it was made for, so a stolen key cannot be used to impersonate other sites. Needs the `cryptography` package.
"""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_WILDCARDS = frozenset({"", "0.0.0.0", "::"})

_ELSEWHERE = ("192.0.2.1", 9)
"""An address for documentation (RFC 5737): asking for the way there sends no packet."""


def own_addresses(host: str) -> list[str]:
    """The address a server was told to listen on; for every interface, the one that leads out of this machine."""
    if host not in _WILDCARDS:
        return [host]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(_ELSEWHERE)
        except OSError:
            return []
        return [probe.getsockname()[0]]


AUTHORITY = "authority.crt"
"""The file that devices install."""

_AUTHORITY_DAYS = 3650
_LEAF_DAYS = 397
"""The longest that phones accept."""
_RENEW_DAYS = 30

_LOCAL_NAMES = ("localhost", "local", "lan", "internal", "home.arpa")
_PRIVATE = (
    "127.0.0.0/8",
    "10.0.0.0/8",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "100.64.0.0/10",
    "169.254.0.0/16",
    "::1/128",
    "fc00::/7",
)


def certificate_for(names: Sequence[str], directory: Path, *, now: datetime) -> tuple[Path, Path]:
    """Files with a certificate for these names and addresses, and with its key. Made when needed, else found."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    wanted = sorted({name.lower() for name in names})
    authority, authority_key = _authority(wanted, directory, now)
    certificate, key = directory / "host.crt", directory / "host.key"
    if not _is_good(certificate, key, wanted, authority, now):
        _issue(wanted, authority, authority_key, certificate, key, now)
    return certificate, key


def _authority(
    names: Sequence[str], directory: Path, now: datetime
) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    certificate, key = directory / AUTHORITY, directory / "authority.key"
    if certificate.exists() and key.exists():
        found, secret = x509.load_pem_x509_certificate(certificate.read_bytes()), _load_key(key)
        if found.not_valid_after_utc > now + timedelta(days=_RENEW_DAYS) and _may_vouch(found, names):
            return found, secret
    secret = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"ahpkit on this machine, {now:%Y-%m-%d}")])
    usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
    made = (
        _builder(subject, subject, secret, now, _AUTHORITY_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(_constraints(names), critical=True)
        .sign(secret, hashes.SHA256())
    )
    _write(key, _pem(secret))
    _write(certificate, made.public_bytes(serialization.Encoding.PEM))
    return made, secret


def _constraints(names: Sequence[str]) -> x509.NameConstraints:
    private = [x509.IPAddress(ipaddress.ip_network(network)) for network in _PRIVATE]
    own = [name for name in names if _address(name) is None]
    public = [address for name in names if (address := _address(name)) is not None and not _is_private(address)]
    addresses = [x509.IPAddress(ipaddress.ip_network(address)) for address in public]
    return x509.NameConstraints([*map(x509.DNSName, [*_LOCAL_NAMES, *own]), *private, *addresses], None)


def _may_vouch(authority: x509.Certificate, names: Sequence[str]) -> bool:
    permitted = authority.extensions.get_extension_for_class(x509.NameConstraints).value.permitted_subtrees or []
    domains = [one.value for one in permitted if isinstance(one, x509.DNSName)]
    networks = [ipaddress.ip_network(str(one.value)) for one in permitted if isinstance(one, x509.IPAddress)]

    def covered(name: str) -> bool:
        if (address := _address(name)) is None:
            return any(f".{name}".endswith(f".{domain}") for domain in domains)
        return any(address in network for network in networks)

    return all(covered(name) for name in names)


def _is_good(certificate: Path, key: Path, names: Sequence[str], authority: x509.Certificate, now: datetime) -> bool:
    if not certificate.exists() or not key.exists():
        return False
    found = x509.load_pem_x509_certificate(certificate.read_bytes())
    alternative = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    have = {str(one.value).lower() for one in alternative}
    fresh = found.not_valid_after_utc > now + timedelta(days=_RENEW_DAYS)
    return fresh and have == set(names) and found.issuer == authority.subject


def _issue(
    names: Sequence[str],
    authority: x509.Certificate,
    authority_key: ec.EllipticCurvePrivateKey,
    certificate: Path,
    key: Path,
    now: datetime,
) -> None:
    secret = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ahpkit")])
    general = [x509.DNSName(name) if (address := _address(name)) is None else x509.IPAddress(address) for name in names]
    made = (
        _builder(subject, authority.subject, secret, now, _LEAF_DAYS)
        .add_extension(x509.SubjectAlternativeName(general), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    chain = made.public_bytes(serialization.Encoding.PEM) + authority.public_bytes(serialization.Encoding.PEM)
    _write(key, _pem(secret))
    _write(certificate, chain)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime, days: int
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=days))
    )


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


def _is_private(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    return any(address in ipaddress.ip_network(network) for network in _PRIVATE)


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    plain = serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)


def _load_key(path: Path) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(path.read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return key


def _write(path: Path, content: bytes) -> None:
    draft = path.with_suffix(".tmp")
    draft.unlink(missing_ok=True)
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
    draft.replace(path)


__all__ = ["AUTHORITY", "certificate_for", "own_addresses"]
