"""E-mail addresses, web addresses that carry credentials, and IP addresses, as they are written."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from echoic.secrets.cues import Cues
from echoic.secrets.findings import Finding
from echoic.secrets.views import View

_LOCAL_SIGNS = frozenset("._%+-!#$&*/=?^`{|}~'")
# RFC 5321 allows 64 characters; more are taken as well, so that none is left standing before the "@".
_LONGEST_LOCAL = 320
_DOMAIN = re.compile(
    r"(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.){1,8}[^\W\d_](?:[\w-]{0,61}[^\W_])|\[[0-9a-fA-F:.]{7,45}\]"
)

_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]{1,20}$")
_REST = re.compile(r"[^\s<>\"]*+")
_USER_INFO = re.compile(r"[^/?#\s@]{1,512}@")
_SECRET_FIELD = re.compile(
    r"""[?&;#](?:[a-z]{1,16}[_-])?(?:token|api_?key|key|secret|pass(?:word|wd|code)?|pwd|sig(?:nature)?|session(?:id)?
    |sid|auth(?:orization)?|code|jwt|otp|credentials?|e?mail|phone|ssn|user(?:name|_?id)?|login|account)=[^&\s]""",
    re.IGNORECASE | re.VERBOSE,
)
_BARE_USER_INFO = re.compile(r"(?<![\w.:/@-])[\w.-]{1,64}:[^\s:@/]{1,64}@(?:[\w-]{1,63}\.){0,8}[\w-]{1,63}")

_IPV4 = re.compile(r"(?<![\w.])(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?![\w]|\.[0-9])")
_IPV6 = re.compile(r"(?<![\w:.])(?=[0-9a-fA-F]{0,4}:)[0-9a-fA-F:]{3,39}(?:\.[0-9]{1,3}){0,3}(?![\w:])")
_MAC = re.compile(r"(?<![\w:-])[0-9a-fA-F]{2}([:-])(?:[0-9a-fA-F]{2}\1){4}[0-9a-fA-F]{2}(?![\w:-])")


def emails(view: View) -> Iterator[Finding]:
    """Addresses around each "@"."""
    text = view.text
    place = text.find("@")
    while place >= 0:
        start = _local_start(text, place)
        domain = _DOMAIN.match(text, place + 1)
        if domain and start < place:
            yield Finding("EMAIL", start, domain.end(), "email")
        place = text.find("@", place + 1)


def _local_start(text: str, at: int) -> int:
    """Where what stands before the "@" begins; `at` if nothing does."""
    start = at
    lowest = max(0, at - _LONGEST_LOCAL)
    if start and text[start - 1] == '"':  # a quoted local part: "ana garcia"@example.com
        return max(text.rfind('"', lowest, start - 1), -1) if '"' in text[lowest : start - 1] else at
    while start > lowest and (text[start - 1].isalnum() or text[start - 1] in _LOCAL_SIGNS):
        start -= 1
    while start < at and not text[start].isalnum():
        start += 1
    return start


def urls(view: View) -> Iterator[Finding]:
    """Web addresses, only where they carry credentials or say who someone is."""
    text = view.text
    done = 0
    place = text.find("://")
    while place >= 0:
        scheme = _SCHEME.search(text, max(done, place - 21), place)
        rest = _REST.match(text, place + 3)
        end = rest.end() if rest else place + 3
        if scheme and (_USER_INFO.match(text, place + 3) or _SECRET_FIELD.search(text, place + 3, end)):
            yield Finding("URL", scheme.start(), end, "url-credentials")
        done = end
        place = text.find("://", end)
    for bare in _BARE_USER_INFO.finditer(text):
        yield Finding("URL", bare.start(), bare.end(), "url-user-info")


def addresses(view: View, cues: Cues) -> Iterator[Finding]:
    """Addresses of hosts and network cards; versions of four parts are told by what stands before."""
    text = view.text
    for found in _IPV4.finditer(text):
        if _is_address(found[0]) and cues.before(found.start()) != "version":
            yield Finding("IP", found.start(), found.end(), "ip-4")
    if ":" not in text and "-" not in text:
        return
    for found in _IPV6.finditer(text):
        if sum(map(bool, found[0].split(":"))) > 2 and _is_address(found[0]):
            yield Finding("IP", found.start(), found.end(), "ip-6")
    for found in _MAC.finditer(text):
        yield Finding("IP", found.start(), found.end(), "mac")


def _is_address(text: str) -> bool:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    return not (address.is_unspecified or address.is_loopback)


__all__ = ["addresses", "emails", "urls"]
