"""Mask secrets by their shape, wherever foreign text is kept or written.

A secret is found by its own form (the prefix of a known kind of token, a JSON Web Token, a private key) or by
what stands before it (an option, a variable, a header, the user part of a URL). References such as `$TOKEN`
and counts are no secrets. The forms of tokens are the ones that their issuers document.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import msgspec

MASK: Final = "…"
"""What a secret is replaced by."""

_STRONG_NAME: Final = (
    r"(?:api[-_]?key|access[-_]?key|account[-_]?key|private[-_]?key|secret|token|passw(?:or)?d|passphrase"
    r"|credentials?|pass|jwt|bearer|cookie)"
)
"""The end of a name that holds a secret, whatever stands before it: `PGPASSWORD`, `clientSecret`."""
_WEAK_NAME: Final = r"(?:key|auth|pat|pw|sig|signature|pwd)"
"""The end of a name that holds a secret where it is a word of its own: `GITHUB_PAT`, `--auth`."""
SECRET_NAME: Final = re.compile(
    rf"(?:.*{_STRONG_NAME}|(?:.*[^a-z])?(?:{_WEAK_NAME}|access)|.*[a-z](?:Key|Auth|Pat|Sig|Pwd))",
    re.IGNORECASE,
)
"""A whole name of a variable or of an option that holds a secret. `PWD` and `OLDPWD` are directories."""
_DIRECTORY_NAMES: Final = frozenset(("PWD", "OLDPWD", "pwd"))
_NAME: Final = rf"(?:{_STRONG_NAME}|(?<![A-Za-z])(?:key|auth|pat|pw|sig|signature)|(?<=[_-])pwd)"
"""The end of a name: what stands before it is not looked at, so that a long text costs no more than its
length."""
_QUOTE: Final = r"\\*[\"']"
"""A quotation mark, also one that is escaped once more, as in JSON inside of a string."""
_REFERENCE: Final = r"(?!\\*\"?\$[A-Za-z_({]|<|…|\[redacted)"
"""Not a variable, a placeholder, or what has been masked before."""
_NO_COUNT: Final = r"(?!\d{1,3}(?![\w.-])|(?:true|false|null|none|yes|no)\b)"
_VALUE: Final = rf"(?:{_QUOTE}[^\"'\\\n]+{_QUOTE}?|[^\s;&|'\"\\,)}}\]]+)"

_PRIVATE_KEY: Final = re.compile(
    r"(-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----).*?"
    r"(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\Z)",
    re.DOTALL,
)
_TOKEN: Final = re.compile(
    r"(?<![A-Za-z0-9])"
    r"(sk-(?:proj|ant|or|svcacct|admin|lf)-|gh[pousr]_|github_pat_|gl(?:pat|dt|rt|cbt|ptt|ft|agent|oas)-"
    r"|xox[abceoprs]-|xapp-|npm_(?=[A-Za-z0-9]{10})|pypi-(?=\w{10})|hf_(?=[A-Za-z0-9]{10})|AIza(?=[\w-]{12})|ya29\."
    r"|[rsp]k_(?:live|test)_|whsec_|dop_v1_|doo_v1_|shp(?:at|ss|ca|pa)_|glsa_|dckr_(?:pat|oat)_|hv[sb]\.(?=\w{12})"
    r"|sq0(?:atp|csp)-|lin_api_|ntn_|tskey-|nvapi-|gsk_|xai-(?=\w{16})|r8_(?=\w{16})|pplx-(?=\w{12})"
    r"|(?:AKIA|ASIA|ABIA|ACCA)(?=[A-Z0-9]{12})|AGE-SECRET-KEY-|dapi(?=[0-9a-f]{20})|SG\.(?=[\w-]{8,80}\.)"
    r"|sk-(?=[\w-]{0,80}\d)(?=[\w-]{20}))"
    r"[\w.+/=-]{4,}"
)
_JSON_WEB_TOKEN: Final = re.compile(r"\b(eyJ)[\w-]{6,}\.[\w-]{4,}(?:\.[\w-]*)*")
_URL_PASSWORD: Final = re.compile(r"((?<=://)[^/@\s:'\"]*:)(?!\$)[^/@\s'\"]+(?=@)")
_URL_TOKEN: Final = re.compile(r"(?<=://)(?![a-z_][a-z0-9._-]{0,15}@|\$|…)[^/@\s:'\"$]{6,}(?=@)")
_HEADER: Final = re.compile(
    r"(?<![\w-])((?:proxy-)?authorization|x-[\w-]{0,40}?(?:key|token|auth|secret|signature)[\w-]{0,40}"
    r"|private-token|api-key|(?:set-)?cookie)"
    rf"({_QUOTE}?\s*+[:=]\s*+{_QUOTE}?(?:(?:basic|bearer|token|digest|negotiate|apikey)\s+)?+){_REFERENCE}"
    r"[^'\"\\\n]+",
    re.IGNORECASE,
)
_BEARER: Final = re.compile(rf"(\bbearer\s+){_REFERENCE}[^\s'\"\\]+", re.IGNORECASE)
_ASSIGNMENT: Final = re.compile(rf"({_NAME}(?:{_QUOTE})?=){_REFERENCE}{_NO_COUNT}{_VALUE}", re.IGNORECASE)
_MEMBER: Final = re.compile(
    rf"({_NAME}{_QUOTE}\s*:\s*){_REFERENCE}(?!null\b|true\b|false\b|\d{{1,3}}\b|\[|\{{){_VALUE}",
    re.IGNORECASE,
)
_SETTING: Final = re.compile(
    rf"({_STRONG_NAME}:\s?){_REFERENCE}{_NO_COUNT}(?![\s/])[^\s'\",;)}}\]]{{3,}}",
    re.IGNORECASE,
)
_OPTION: Final = re.compile(
    rf"((?<![\w-])--?(?:[\w-]{{0,40}}?{_STRONG_NAME}|(?:[\w-]{{0,40}}?-)?{_WEAK_NAME})\s+){_REFERENCE}(?!-){_VALUE}",
    re.IGNORECASE,
)
_USER: Final = re.compile(
    rf"((?<![\w-])(?:-u|-U|--user|--proxy-user)[ =]?{_QUOTE}?[^\s:'\"=/-][^\s:'\"=/]*:)"
    rf"{_REFERENCE}(?!\d+\b|/)[^\s'\"]+"
)
_SPACED_ASSIGNMENT: Final = re.compile(
    rf"({_STRONG_NAME}\s+=\s+)(?:(?={_QUOTE}){_REFERENCE}{_VALUE}|(?=\S*\d)[^\s;&|'\"\\,()$]{{8,}})",
    re.IGNORECASE,
)
_COMMAND: Final = re.compile(
    rf"((?:(?<![\w-])set\s+(?:-\w+\s+)?[\w.-]{{0,60}}?{_NAME}|\blogin\s+\S+\s+password"
    rf"|\blogin\b[^\n|;&]{{0,200}}?\s-p|\bredis-cli\b[^\n|;&]{{0,200}}?\s-a"
    rf"|{_STRONG_NAME}[\w-]{{0,40}}\s*<<<)\s*(?<=[\s<])){_REFERENCE}(?!-){_VALUE}",
    re.IGNORECASE,
)
_PIPED: Final = re.compile(
    rf"(\b(?:echo|printf)\s+(?:-n\s+|'?%s'?\s+)?){_REFERENCE}{_VALUE}(?=\s*\|[^\n]{{0,200}}(?:password|token|secret|key)-stdin)"
)
_PASSWORD_ARGUMENT: Final = re.compile(
    r"((?<!\S)-p)(?=['\"]?[^\s'\":=/]{0,40}?[A-Z0-9])(?!\d+(?::\d+)*(?!\S)|[\d.]+:)"
    r"(?:(?=['\"]?[^\s'\":=/]{6})|(?<=mysql -p))"
    r"(?:'[^']+'|\"[^\"$]+\"|[^\s'\":=/$-][^\s'\":=/]*)"
)

_PATTERNS: Final[tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...]] = (
    (_PRIVATE_KEY, rf"\1{MASK}"),
    (_HEADER, rf"\1\2{MASK}"),
    (_BEARER, rf"\1{MASK}"),
    (_URL_PASSWORD, rf"\1{MASK}"),
    (_URL_TOKEN, MASK),
    (_TOKEN, rf"\1{MASK}"),
    (_JSON_WEB_TOKEN, rf"\1{MASK}"),
    (_MEMBER, lambda match: match[1] + _masked_value(match)),
    (_ASSIGNMENT, lambda match: match[1] + _masked_value(match)),
    (_SPACED_ASSIGNMENT, lambda match: match[1] + _masked_value(match)),
    (_SETTING, rf"\1{MASK}"),
    (_COMMAND, lambda match: match[1] + _masked_value(match)),
    (_PIPED, lambda match: match[1] + _masked_value(match)),
    (_OPTION, lambda match: match[1] + _masked_value(match)),
    (_USER, rf"\1{MASK}"),
    (_PASSWORD_ARGUMENT, rf"\1{MASK}"),
)
_INDICATORS: Final = (
    *("key", "secret", "token", "pass", "credential", "jwt", "bearer", "cookie", "auth", "pat", "pw", "sig"),
    *(
        "-----begin",
        "://",
        "eyj",
        "-p",
        "-u",
        "sk-",
        "gh",
        "gl",
        "xox",
        "xapp-",
        "npm_",
        "pypi-",
        "hf_",
    ),
    *("aiza", "ya29.", "k_live_", "k_test_", "whsec_", "dop_v1_", "doo_v1_", "shp", "dckr_", "hvs.", "hvb."),
    *("sq0", "lin_api_", "ntn_", "tskey-", "nvapi-", "gsk_", "xai-", "r8_", "pplx-", "dapi", "sg."),
    *("akia", "asia", "abia", "acca", "redis-cli"),
)
"""One of these, in lower case, occurs in every text that a pattern matches: most texts have none."""
_MAX_CACHED_CHARS: Final = 4_000
"""Longer texts are masked anew each time: they are rare, and must not fill memory."""


def mask_secrets(text: str) -> str:
    """Return `text` with secrets replaced by `…`; what names them stays."""
    return _mask_cached(text) if len(text) <= _MAX_CACHED_CHARS else _mask(text)


def _mask(text: str) -> str:
    lower = text.lower()
    if not any(indicator in lower for indicator in _INDICATORS):
        return text
    for pattern, replacement in _PATTERNS:
        text = pattern.sub(replacement, text)
    return text


_mask_cached = lru_cache(maxsize=8_192)(_mask)


def _masked_value(match: re.Match[str]) -> str:
    """Return the mask in the quotation marks of the value: what encloses it stays readable."""
    value = match[0][len(match[1]) :]
    opening = re.match(_QUOTE, value)
    closing = re.search(rf"{_QUOTE}\Z", value)
    return f"{opening[0] if opening else ''}{MASK}{closing[0] if closing and opening else ''}"


def is_secret_name(name: str) -> bool:
    """Return whether a variable or an option of this name holds a secret."""
    return name not in _DIRECTORY_NAMES and SECRET_NAME.fullmatch(name) is not None


def mask_fields(value: Any) -> Any:
    """Return a struct, a collection or a text in which secrets are masked in all texts; the same object where
    there are none."""
    masked: Any = _mask_any(value)
    return masked


def _mask_any(value: Any) -> Any:
    match value:
        case str():
            return value if type(value) is not str else mask_secrets(value)
        case msgspec.Struct():
            changes = {
                name: masked
                for name in value.__struct_fields__
                if (masked := _mask_any(old := getattr(value, name))) is not old
            }
            return msgspec.structs.replace(value, **changes) if changes else value
        case tuple() if hasattr(value, "_fields"):
            return _mask_items(value, lambda items: type(value)(*items))
        case tuple() | list():
            return _mask_items(value, type(value))
        case dict():
            return {key: _mask_any(item) for key, item in value.items()}
    return value


def _mask_items(value: Any, rebuild: Callable[[list[Any]], Any]) -> Any:
    masked = [_mask_any(item) for item in value]
    return rebuild(masked) if any(new is not old for new, old in zip(masked, value, strict=True)) else value
