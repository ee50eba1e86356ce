"""The shapes of secrets: tokens by the prefixes that their issuers document, and what stands before a value.

Every text that a shape matches contains one of its literals, in lower case: most lines contain none, and are
passed over without trying a pattern. The last group of a match is what is masked; a value in
quotation marks keeps these.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from agentdash.model.patterns import Pattern

MASK: Final = "…"
"""What a secret is replaced by."""


class Token(NamedTuple):
    """A kind of token, known by its prefix."""

    literal: str
    """In lower case."""
    pattern: Pattern
    is_prefix: bool
    """The secret stands just behind the literal."""


class Shape(NamedTuple):
    """A pattern of what stands before a secret."""

    pattern: Pattern
    literals: tuple[str, ...]


# ---------------------------------------------------------------- names

STRONG_NAME: Final = (
    r"(?:(?:api|access|account|private|secret|auth|encryption|signing|master|license|subscription|deploy"
    r"|preshared|pre[-_]shared|unseal)[-_ \x1f]?key|key[-_]data|(?<![a-z])psk"
    r"|secret|token|passw(?:or[dt]|d)|passphrase|credentials?|jwt|bearer|cookie|webhook[-_]url"
    r"|(?:(?<![a-z])|db|ssh|pg|my|user|root|admin|smtp|ftp|redis|key|store)pass(?!w|phrase))"
    r"(?:[-_](?:base|value|string|b64|base64|data|hash|[0-9])|(?<=key) [0-9]\b)?"
)
"""The end of a name that holds a secret, whatever stands before it: `PGPASSWORD`, `clientSecret`."""
WEAK_NAME: Final = r"(?:key|auth|pat|pw|sig|signature|(?<=[_;-])pwd)"
"""The end of a name that holds a secret where it is a word of its own: `GITHUB_PAT`, `--auth`. `PWD` alone
is a directory."""
NAME_LITERALS: Final = (
    *("key", "secret", "token", "pass", "credential", "jwt", "bearer", "cookie", "webhook", "psk"),
)
"""One occurs in every `STRONG_NAME`."""

# ---------------------------------------------------------------- values

_QUOTED_QUOTE: Final = r"(?:'\\+''|'\\*\"'\\*\"')"
"""A quotation mark within a quoted word of a shell: `'\\''` and `'"'"'`."""
QUOTE: Final = rf"(?:{_QUOTED_QUOTE}|\\*[\"'])"
"""A quotation mark, also one that is escaped once more, as in JSON inside a string."""
_GAP: Final = r"(?:\\*(?:\s|(?<=\\)n))+"
"""White space, also around a line break that a backslash continues, or that is written as `\\n`."""
_PLAIN: Final = (
    rf"(?!{QUOTE}?(?:\$[A-Za-z_({{]|%\w+%|\{{\{{|<|…|\*\*\*|\[redacted))"
    rf"(?!{QUOTE}?(?:\d{{1,3}}(?![\w.-])|(?:true|false|null|none|nil|yes|no|undefined)\b))"
    r"(?!\(|[A-Za-z_][\w.]*[(\[])"
    r"(?!(?:self|cls|this|os|sys|process|env|config|settings|request|req|args|options|ctx)\.)"
)
"""Not a variable, a placeholder, a count, an expression, or what has been masked before."""
_CHARACTER: Final = r"(?:[^\"'\\\n]|\\(?!\\*[\"'])|(?<=\w)[\"'](?=\w))"
"""One of a quoted text; a quotation mark is one between letters, as in `it's`."""
_QUOTED: Final = (
    rf"(?:{_QUOTED_QUOTE}{_CHARACTER}+{_QUOTED_QUOTE}?"
    rf"|'{_CHARACTER}+(?:(?:{_QUOTED_QUOTE}|\\+'(?=\w)){_CHARACTER}+)*'?"
    rf"|\"{_CHARACTER}+(?:\\+\"(?=\w){_CHARACTER}+)*\"?"
    rf"|\\+[\"']{_CHARACTER}+(?:\\\\\\+[\"'](?=\w){_CHARACTER}+)*(?:\\*[\"'])?)"
)
_OPENED: Final = r"(?=\\*[\"'][^\s\"'\\)\],;:][^\"'\\\n]{2})"
"""Before a quotation mark that opens a text, and closes none: `getpass('Password: ')`."""
_VALUE: Final = rf"(?:\$?{_QUOTED}|[^\s;&|'\"\\,)}}\]<>]+)"
_MIXED: Final = r"(?=[^\s'\"\\]{0,80}\d)(?=[^\s'\"\\]{0,80}[A-Za-z])[^\s;&|'\"\\,(){}\]\[]{8,}"
"""A value with both digits and letters."""
_RANDOM: Final = (
    r"(?=[0-9]*[A-Za-z])(?=[A-Za-z]*\d)"
    r"(?:[0-9a-f]{32,}|(?-i:(?=[A-Z0-9]*[a-z])(?=[a-z0-9]*[A-Z])[A-Za-z0-9]{24,}))(?![\w/-]|\.\w)"
)
"""A single word that nobody would write by hand."""
_TYPE: Final = (
    r"(?!(?:string|str|secretstr|secretbytes|bool|boolean|int|integer|number|object|bytes|any|required"
    r"|optional|unknown)\b"
    r"|[A-Za-z_][A-Za-z_.]*(?:[^\S\n]*[)|=\[<,]|[^\S\n]+[a-z|]))"
)
"""Not the type of a field or parameter, and not prose."""

# ---------------------------------------------------------------- tokens

_DIGIT: Final = r"(?=[A-Za-z_-]{0,80}\d)"
"""A random value has digits; a name seldom does."""
_SAFE: Final = r"(?=[A-Za-z_.+=-]{0,80}\d)[\w.+=-]{12,}"
_LONG: Final = r"(?=[A-Za-z_.+/=-]{0,80}\d)[\w.+/=@-]{12,}"
_WORD: Final = rf"{_DIGIT}[A-Za-z0-9]{{22,}}"
_START: Final = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))"
"""Where a token may begin."""


def _token(literals: str, rest: str, *, prefix: str | None = None) -> list[Token]:
    """Return a kind of token for each of the literals, which blanks separate; `rest` is what follows them."""
    # a token may follow `_` or `-`, but no letter or digit: then it is a part of something longer; the letter
    # of an escaped line break is none
    return [
        Token(
            literal=literal.lower(),
            pattern=Pattern(rf"{_START}{prefix or re.escape(literal)}(?P<secret>{rest})"),
            is_prefix=prefix is None,
        )
        for literal in literals.split()
    ]


TOKENS: Final[tuple[Token, ...]] = (
    # prefixes that nothing else has: whatever follows is secret
    *_token("sk-proj- sk-ant- sk-or- sk-svcacct- sk-admin- sk-lf- xapp- tskey-", _SAFE),
    *_token("ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ shpat_ shpss_ shpca_ shppa_", _SAFE),
    *_token("glpat- gldt- glrt- glcbt- glptt- glft- glagent- gloas- glsoat-", _SAFE),
    *_token("glffct- glimt- glwt- sq0atp- sq0csp- sq0idp- whsec_", _SAFE),
    *_token("sk_live_ sk_test_ sk_org_live_ sk_org_test_", _SAFE),
    *_token("rk_live_ rk_test_ pk_live_ pk_test_", _SAFE),
    # prefixes before something long with a digit: models, and what agents search and run with
    *_token("tgp_v1_ pcsk_ tvly- wandb_v1_ pylf_v1_ ctx7sk- sgp_ sgamp_user_ api_org_", _LONG),
    *_token("gsk_ nvapi- pplx- lsv2_pt_ lsv2_sk_ r8_ xai- AIza AQ.Ab ABSK bedrock-api-key-", _LONG),
    # code hosts, packages, chat
    *_token("ATATT3 ATCTT3 ATBB pypi- dckr_pat_ dckr_oat_ CCIPAT_ CCIPRJ_ bkua_ fly_pat_", _LONG),
    *_token("cpk_ lin_api_ lin_oauth_ ntn_ figd_ figu_ RWRTY0Iy RWQAAEIy", _LONG),
    # clouds
    *_token("ya29. GOCSPX- 1//0 hvs. hvb. hvr. fm1_ fm2_ fo1_ sb_secret_ vercel_blob_rw_", _LONG),
    *_token("dp.st. dp.pt. dp.ct. dp.sa. dp.scim. dp.audit. dop_v1_ doo_v1_ dor_v1_", _LONG),
    *_token("pscale_tkn_ pscale_pw_ pscale_oauth_ HRKU- CFPAT- sbp_ nfp_ vcp_ cfut_ cfat_", _LONG),
    *_token("signkey- tr_prod_ tr_dev_ polar_oat_ polar_pat_ cal_live_ ops_eyJ AGE-SECRET-KEY-", _LONG),
    # services
    *_token("glsa_ glc_ sntrys_ sntryu_ xkeysib- xsmtpsib- hcaik_ hcbik_ hcamk_ hcxik_", _LONG),
    *_token("NRAK- NRII- bb_live_ bb_test_ EAACEdEose0cBA", _LONG),
    *_token("rzp_live_ rzp_test_ phx_ shippo_live_ shippo_test_", rf"{_DIGIT}\w{{14,}}"),
    # prefixes that names have as well: letters and digits alone, of some length
    *_token("hf_ npm_ tfp_ npg_", r"(?=[a-z]{0,80}[A-Z0-9])[A-Za-z0-9]{12,}"),
    *_token("LTAI AKID AKLT SCW", r"(?=[A-Z]{0,80}[0-9a-z])[A-Za-z0-9]{12,}"),
    *_token("AKIA ASIA ABIA ACCA", r"[A-Z0-9]{12,}"),
    *_token("jina_ csk- fw_ exa_ apify_api_ rpa_ BSA sk_ m0- ak- as- cio secret_ sess-", _WORD),
    *_token("vck_ vca_ vci_ vcr_ cfk_ napi_ rnd_ tsec_ ddp_ ddw_ ddo_ ddr_ EZAK EZTK aio_", _WORD),
    *_token("AKCp cmVmd oy2", rf"{_DIGIT}[A-Za-z0-9]{{43,}}"),
    *_token("sl.u. sl.B EAAA mfa. pa- fk-", rf"{_DIGIT}(?=[a-z0-9_-]{{0,80}}[A-Z])[\w-]{{30,}}"),
    *_token("fc- cr- e2b_ key_ key- crsr_ squ_ sqp_ sqa_ st. rubygems_ dapi", r"[0-9a-f.-]{32,}"),
    *_token("PMAK- pul-", r"(?=[a-f-]{0,80}\d)[0-9a-f-]{20,}"),
    *_token("sk-", rf"{_DIGIT}[\w-]{{20,}}"),
    # known by more than a prefix
    *_token("tid=", r"[0-9a-f]{32};exp=[^\s'\"\\]+"),  # Copilot
    *_token("xox", r"[\w.-]{4,}", prefix=r"xox[abceoprs](?:\.xox[a-z])?-"),
    *_token("hooks.slack.com/", r"[\w/]{8,}", prefix=r"hooks\.slack\.com/(?:services|workflows|triggers)/"),
    *_token("/webhooks/", r"[\w-]{8,}", prefix=r"discord(?:app)?\.com/api/(?:v\d+/)?webhooks/\d+/"),
    *_token("webhook.office.com/webhookb2/", r"[\w@/-]{8,}"),
    *_token("hooks.zapier.com/hooks/catch/", r"[\w/]{8,}"),
    *_token(":AA", r"[\w-]{20,}", prefix=r"(?:bot)?\d{8,10}:AA"),  # Telegram
    *_token("8Q~ 7Q~", r"[\w.~-]{3}[78]Q~[\w.~-]{31,34}", prefix="(?=)"),  # Entra ID
    *_token("JQQJ99 AZDO", r"[A-Za-z0-9]{52,80}(?:JQQJ99|AZDO)[A-Za-z0-9]{4,}", prefix="(?=)"),
    *_token(".atlasv1.", r"[\w-]{16,}", prefix=r"[A-Za-z0-9]{14}\.atlasv1\."),
    *_token("prod: dev:", r"[\w+/=]{20,}", prefix=r"(?:prod|dev):[a-z]+-[a-z]+-\d+\|"),  # Convex
    *_token("re_", rf"{_DIGIT}[A-Za-z0-9]{{8}}_[A-Za-z0-9]{{20,}}\b"),
    *_token("pat", r"[A-Za-z0-9]{14}\.[0-9a-f]{64}\b"),
    *_token("pk_", r"\d{4,9}_[A-Z0-9]{32}\b"),
    *_token("-us", r"[0-9a-f]{32}-us\d{1,2}\b", prefix="(?=)"),  # Mailchimp
    *_token("dt0c01. dt0s01. dt0s16.", r"[A-Z0-9]{24}\.[A-Z0-9]{64}"),
    *_token("access-production- access-sandbox- access-development-", r"[0-9a-f-]{36}"),
    *_token("SG.", r"[\w-]{8,80}\.[\w-]{8,}"),
    # JSON Web Token; an encrypted one may have an empty second part
    *_token("eyJ", r"[\w-]{6,}\.(?:[\w-]{4,}|(?=\.[\w-]{8,}\.))(?:\.[\w-]*)*"),
)

_BODY: Final = r"[ \t|>+]*(?:[A-Za-z0-9+/=]{8,}|[\w-]+: [^\n]*)?[ \t|]*(?=\n|\Z)"
"""A line of a key, or of the headers before it; screens and diffs have marks before it."""
PRIVATE_KEY: Final = Pattern(
    r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"
    r"(?P<secret>(?:[^-]|-(?!-)){1,16000}(?=-----END [A-Z0-9 ]*PRIVATE KEY)"
    r"|(?:(?:\\+[nr]|[ ])+(?:[\w-]+:[ ][^\s\\\"']+|[A-Za-z0-9+/=]{16,})|[A-Za-z0-9+/=]|\\+[nr])*"
    rf"(?:\n{_BODY})*(?:\n[ \t|>+]*[A-Za-z0-9+/=]{{16,}})?)"
    r"|(?P<tail>(?:[ \t>|+]*[A-Za-z0-9+/=]{16,}(?:\s|\\+[nr])+)+)[ \t>|+]*-----END [A-Z0-9 ]*PRIVATE KEY"
    r"|Private-Lines: \d+(?:\s|\\+[nr])+(?P<putty>(?:[A-Za-z0-9+/=]{16,}(?:\s|\\+[nr]|\Z))+)",
    re.DOTALL,
)
"""PEM, also without its beginning or end, as outputs are cut, or on one line; and PuTTY's format."""
PRIVATE_KEY_LITERALS: Final = ("private key", "private-lines")

# ---------------------------------------------------------------- what stands before a secret

_PASSWORD_ABROAD: Final = (
    *("contraseña", "hasło", "kennwort", "mot de passe", "senha", "wachtwoord"),
    *("пароль", "パスワード", "密码", "密碼", "비밀번호"),
)
"""`Passwort` is among the names."""
_ASKED_FOR: Final = ("pass", "password", "passphrase", "token", "secret", "key")
"""What options name that take a command, or a file."""


def _shape(pattern: str, *literals: str, flags: int = re.IGNORECASE) -> Shape:
    return Shape(Pattern(pattern, flags), literals)


_OPTIONS: Final = (
    (
        r"-p",
        *("login", "sshpass", "mongo", "cqlsh", "rdesktop", "evil-winrm", "twine", "usermod", "useradd"),
        *("crackmapexec", "netexec", "psexec"),
    ),
    (r"-P", "sqlcmd", "zip", "unzip", "mosquitto_pub", "mosquitto_sub", "ipmitool", "bcp"),
    (r"(?:-a|(?i:auth)\s)", "redis-cli"),
    (r"-w", "ldap", "add-generic-password", "add-internet-password"),
    (r"-k\s", "openssl"),
    (r"-t\s", "doctl"),
    (r"-[AX]\s", "snmp"),
    (r"/p:", "freerdp", "xfreerdp", "wlfreerdp"),
    (r"/(?i:rp)\s", "schtasks"),
    (r"--value[\s=]", "put-parameter", "keyvault"),
    (r"pass(?:word)?[\s=]", "nmcli", "mysqladmin", "rclone"),
)
"""Options of programs that take a secret, which no name of a secret tells."""
_POSITIONS: Final = {
    "set": rf"(?<!-)setx?\s+(?:-\w+\s+)?[\w./:-]{{0,60}}?(?:{STRONG_NAME}|(?<![A-Za-z]){WEAK_NAME})\s"
    r"(?!\s*(?:for\s|=))",
    "$env:": rf"\$env:\w{{0,60}}?(?:{STRONG_NAME}|(?<![A-Za-z]){WEAK_NAME})\s*=",
    "login": r"login\s+\S+\s+password\s|(?:vault|cargo)\s+login\s",
    "unseal": r"unseal\s",
    "bw": r"bw\s+(?:unlock|login\s+\S+)\s",
    "obscure": r"rclone\s+obscure\s",
    "encrypt_string": r"encrypt_string\s",
    "htpasswd": r"htpasswd\s+-\w*b\w*\s+\S+\s+\S+\s",
    "alias": r"mc\s+alias\s+set\s+\S+\s+\S+\s+\S+\s",
    "env": r"(?-i:ENV\s+\w{0,60}?(?:TOKEN|PASSWORD|SECRET|API_?KEY)\s)",
    "wpa_passphrase": r"wpa_passphrase\s+\S+\s",
    "set_network": r"set_network\s+\d+\s+(?:psk|password|wep_key\d)\s",
    "ftp": r"l?ftp\b[^\n|;&]{0,200}?\s-u\s*[\w.@-]+,",
    "secret": r"secret\s+set\s+\S+[^\n|;&]{0,80}?\s(?:-b|--body)",
    "authtoken": r"(?:add-)?authtoken\s",
    "pypi-token.": r"pypi-token\.\S+\s",
    "http-basic.": r"http-basic\.\S+\s+\S+\s",
    "net": r"net1?(?:\.exe)?\s+user\s+\S+\s+(?![*/])(?=\S+\s*(?:/\w|['\"|;&]|$))"
    r"|net1?(?:\.exe)?\s+use\s[^\n|;&]{0,200}?(?:\\\\\S+\s+(?=\S+\s+/u)|/user:\S+[^\S\n]+(?=\S))(?![*/])",
    "convertto-": r"convertto-securestring\s+(?:-(?:asplaintext|force|string)\s+)*",
}
"""What stands before a secret that is an argument of a command, by what is in it, in lower case."""
_IN_COMMANDS: Final = (
    *_POSITIONS.values(),
    *(rf"(?:{'|'.join(programs)})\w*\b[^\n|;&]{{0,200}}?\s(?-i:{option})" for option, *programs in _OPTIONS),
)
STRONG_NAMES: Final = Pattern(STRONG_NAME)
"""Names in a text in lower case."""
AFTER_NAME: Final = Pattern(
    rf"{QUOTE}\s*(?::|=>|=)\s*{_PLAIN}(?![\[{{>=])(?P<member>{_VALUE})"
    rf"|{QUOTE}\]\s*=\s*[bruf]?{_PLAIN}(?P<subscript>{_QUOTED})"
    rf"|=(?!=|>){_PLAIN}(?P<assigned>{_VALUE})"
    rf"|\s+:?=\s+{_PLAIN}(?P<spaced>{_QUOTED}|(?=\S*\d)[^\s;&|'\"\\,()$]{{8,}})"
    rf"|:\s?+{_PLAIN}(?P<set>{_OPENED}{_QUOTED}"
    rf"|{_TYPE}(?![\s/])[^\s'\",;)}}\]]{{3,}})"
    rf"|>(?!\s*<|\$|…)(?P<element>[^<>\n]+)(?=</)"
    rf"|{QUOTE}?(?:[\s,;]|\\+n)*{QUOTE}?value{QUOTE}?\s*[:=]\s*{_PLAIN}(?P<value>{_VALUE})"
    r"|(?:\s(?:is|was|ist|war):?|:)\s+[`*]*"
    rf"{_PLAIN}(?P<said>(?=[^\s'\"`]*\d)[^\s'\"`,;]{{6,}})"
    rf"|[ \t\x1f]+(?P<bare>{_RANDOM})",
    re.IGNORECASE,
)
"""What follows a strong name, at whose end it is tried."""

SHAPES: Final = (
    _shape(r"://[^/@\s:'\"]*:(?!\$|…)(?P<secret>[^/@\s'\"]+)(?=@)", "://", flags=0),
    _shape(r"://(?![a-z_][a-z0-9._-]{0,15}@|\$|…)(?P<secret>[^/@\s:'\"$]{6,})(?=@)", "://", flags=0),
    _shape(
        r"(?<![\w-])(?:(?:proxy-)?authorization|x-[\w-]{0,40}?(?:key|token|auth|secret|signature)[\w-]{0,40}"
        rf"|private-token|api-key){QUOTE}?\]?\s*+[:=](?!=)\s*+{QUOTE}?"
        rf"(?>(?:(?:basic|bearer|token|digest|negotiate|apikey)\s+(?:'\\*\"|\\*\"')?)?){_PLAIN}"
        r"(?P<secret>[^'\"\\\n]+)",
        *("authorization", "x-", "private-token", "api-key"),
    ),
    _shape(
        rf"\b(?:{'|'.join(_PASSWORD_ABROAD)})(?:\s*[:：=]|\s(?:lautet|es|é|is|ist):?\s)\s*"
        rf"{_PLAIN}(?P<secret>{_VALUE})",
        *_PASSWORD_ABROAD,
    ),
    _shape(r"\bresponse=\\*\"?(?P<secret>[0-9a-f]{32,64})\b", "digest"),
    _shape(
        rf"(?<![\w-])(?:set-)?cookie{QUOTE}?\s*+[:=]\s*+{QUOTE}?{_PLAIN}"
        r"(?=[^'\"\\\n=]{1,200}=)(?P<secret>[^'\"\\\n]+)",
        "cookie",
    ),
    _shape(r"\bcookies\s*[:=]\s*\{(?P<secret>[^{}\n]+)(?=\})", "cookies"),
    _shape(
        rf"\bbearer\s+{_PLAIN}"
        r"(?P<secret>(?=[^\s'\"\\]*\d)[^\s'\"\\]{8,}|(?-i:[A-Z_-]{8,})|[^\s'\"\\]{20,})",
        "bearer",
    ),
    # weak names
    _shape(
        rf"(?<![A-Za-z]){WEAK_NAME}{QUOTE}\]?\s*(?::|=>|=)\s*{_PLAIN}(?![\[{{>=]){QUOTE}?(?P<secret>{_MIXED})",
        *('key"', "key'", "key\\", 'auth"', "auth'", "auth\\", 'pat"', "pat'", 'pw"', "pw'", 'pwd"', "pwd'"),
        *('sig"', "sig'", "sig\\", 'signature"', "signature'"),
    ),
    _shape(
        rf"(?:(?<![\w-])--?(?:[\w-]{{0,40}}?-)?|[?&#;]|(?-i:(?<=[A-Z0-9]_)|(?<![A-Za-z_])(?=[A-Z])))"
        rf"{WEAK_NAME}={_PLAIN}(?!=)(?P<secret>{_VALUE})"
        rf"|(?<![A-Za-z]){WEAK_NAME}={_PLAIN}{QUOTE}?(?P<mixed>{_MIXED})",
        *("key=", "auth=", "pat=", "pw=", "sig=", "signature=", "pwd="),
    ),
    # commands
    _shape(
        rf"(?<![\w-])--?(?:[\w-]{{0,40}}?{STRONG_NAME}{_GAP}{_PLAIN}(?!-|~?/\w+/|\./)(?P<secret>{_VALUE})"
        rf"|(?:[\w-]{{0,40}}?-)?{WEAK_NAME}{_GAP}{_PLAIN}(?!-|~?/|\./){QUOTE}?(?P<mixed>{_MIXED}))",
        *NAME_LITERALS,
        *(f"{name}{end}" for name in ("auth", "pat", "pw", "pwd", "sig") for end in (" ", "\x1f")),
    ),
    _shape(
        r"(?:(?<![\w-])(?:-u|-U|--user|--proxy-user)|\b(?:https?|xhs?)\b[^\n|;&]{0,80}?\s(?:-a|--auth))"
        rf"[ =\x1f]?{QUOTE}?"
        rf"(?:[^\s:'\"=/-][^\s:'\"=/]*:|[^\s:'\"=/%-]+%){_PLAIN}(?!\d+\b|/)"
        r"(?P<secret>\\*\"[^\"\n]+\"?|'[^'\n]+'?|[^\s'\"]+)",
        *(" -u", "\x1f-u", "\n-u", "--user", "--proxy-user", " -a ", "\x1f-a\x1f", "--auth"),
        flags=0,
    ),
    _shape(
        rf"(?:\b|(?<=\\n)|(?=\$))(?:{'|'.join(_IN_COMMANDS)})\s*{_PLAIN}(?!-)(?P<secret>{_VALUE})",
        *_POSITIONS,
        *(program for _, *programs in _OPTIONS for program in programs),
        flags=re.IGNORECASE | re.MULTILINE,
    ),
    _shape(
        r"(?:^|\s)[\w.-]+/[\w.-]+:(?!\$|…)(?P<secret>[^\s@/:]+)@",
        *("impacket", "psexec", "secretsdump", "wmiexec", "smbexec"),
    ),
    _shape(rf"(?<!\S)-[NP]\s+{_PLAIN}(?P<secret>{_VALUE})", "ssh-keygen", flags=0),
    _shape(  # --password-command "echo x", RESTIC_PASSWORD_COMMAND='printf x'
        rf"(?:{'|'.join(_ASKED_FOR)})[-_](?:command|cmd|file)(?:\s+|=)(?:\\*[\"']|<\()?"
        rf"(?:echo|printf)\s+(?:-[ne]+\s+)?{_PLAIN}(?P<secret>\\*[\"']?[^\s\"'\\)]+)",
        *(
            f"{name}{end}"
            for name in _ASKED_FOR
            for end in ("-command", "_command", "-cmd", "_cmd", "-file", "_file")
        ),
    ),
    _shape(rf"\bcurl\b[^\n|;&]{{0,200}}?\s-b\s*{QUOTE}?[\w.-]{{1,60}}={_PLAIN}(?P<secret>[^\s'\"]+)", "curl"),
    _shape(
        r"(?<!\S)-p(?=['\"]?[^\s'\":=/]{0,40}?[A-Z0-9])(?!\d+(?::\d+)*(?!\S)|[\d.]+:)"
        r"(?:(?=['\"]?[^\s'\":=/]{6})|(?<=mysql -p))"
        r"(?P<secret>'[^']+'|\"[^\"$]+\"|[^\s'\":=/$-][^\s'\":=/]*)",
        *(" -p", "\x1f-p", "\n-p"),
        flags=0,
    ),
    _shape(
        r"\b(?:(?:set\s+)?password(?:\s+for\s+\S+)?\s*(?:=\s*(?:password\s*\()?|\s)"
        rf"|identified\s+(?:by|with\s+\S+\s+(?:by|as))\s+)\s*{_PLAIN}(?P<secret>{_QUOTED})",
        *("password '", 'password "', "set password", "identified "),
    ),
    _shape(  # auth=('u', 'x'), HTTPBasicAuth('u', 'x'), NetworkCredential("u", "x"), smtp.login('u', 'x')
        rf"\b(?:auth\w*\s*=\s*|\w*(?:basicauth|credentials?(?:\]::new)?|\.login))\(\s*"
        rf"[bruf]?(?:{_QUOTED}|{QUOTE}{QUOTE})\s*,\s*[bruf]?{_PLAIN}(?P<secret>{_QUOTED})",
        *("auth=(", "auth = (", "basicauth(", "credential(", "credentials(", ".login(", "credential]::new("),
    ),
    _shape(
        rf"\b(?:setdefault|putenv|setenv|SetEnvironmentVariable)\(\s*{QUOTE}\w{{0,60}}?{STRONG_NAME}{QUOTE}\s*,"
        rf"\s*{_PLAIN}(?P<secret>{_QUOTED})",
        *("setdefault(", "putenv(", "setenv(", "setenvironmentvariable("),
    ),
    _shape(  # without quotation marks, which a shell takes: python -c "os.environ["API_KEY"] = "x""
        rf"(?:env(?:iron)?[\[{{]\s*\w{{0,60}}?{STRONG_NAME}\s*[\]}}]\s*=(?![=>])"
        rf"|(?:putenv|setenv|environ\.setdefault)\(\s*\w{{0,60}}?{STRONG_NAME}\s*,)"
        rf"\s*{_PLAIN}(?![\[{{])(?P<secret>{_VALUE})",
        *("env[", "environ[", "env{", "putenv(", "setenv(", "environ.setdefault("),
    ),
    _shape(rf"(?:\b|(?<=\\n))_auth\s*=\s*{_PLAIN}(?=\S*\d)(?P<secret>{_VALUE})", "_auth"),  # .npmrc
    _shape(  # ~/.pgpass
        r"(?<![^\s'\"`])[\w.*-]+:(?:5432|5433|6432|\*):[\w*-]+:[\w*-]+:(?!…)(?P<secret>[^\s'\"`]+)",
        *(":5432:", ":5433:", ":6432:", ":*:"),
    ),
)
"""All other shapes."""
