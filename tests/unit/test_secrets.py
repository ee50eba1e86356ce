"""Secrets are masked by their shapes, in every text that agentdash writes; other texts stay as they are."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentdash.collect.processes.env_filter import clean_arguments
from agentdash.model import secrets
from agentdash.model.evidence import Evidence, EvidenceSource
from agentdash.model.sanitize import clean_line
from agentdash.model.secret_shapes import SHAPES, TOKENS
from agentdash.model.secrets import is_secret_name, mask_fields, mask_lines, mask_secrets
from tests.unit.planted_secrets import HEX, LONG, PLANTED, SHORT, leaks
from tests.unit.rollout_files import all_files

INNOCENT = """
cd /srv/pypi-server-mirror && ls '/data/hf_models2024/x' "~/xapp-server/y"
pk_test_utils/ /opt/sk-proj-demo/bin /home/me/.cache/ghr_nlom4yt1/home
sk_buff_alloc_skb_with_frags_and_flags_2 napi_create_string_utf8_with_length_1 rnd_state_of_generator_v2
re_compile_pattern_v2 fw_update_handler_for_all_devices_2 key_0 pat as-is pa-system cio3 prod:db-1 dev:x|y
st.mean tid=12 BSA EAAA call_6xY2aB9cD8eF7gH6iJ5kL4mN fc_0682a1b2c3d4e5f60718293a4b5c6d7e rs_0682a1b2c3d4
toolu_01AbCdEfGhIjKlMnOpQrStUv msg_01XyZ
echo root:x | chown; sudo -S true; ftp -u host; nmcli dev show password
PWD=/home/me/project OLDPWD=/x pwd=/a
sandbox_workspace_write.writable_roots = ["/home/u/board"]
sandbox_workspace_write.network_access = true
env | grep CODEX_SANDBOX_NETWORK_DISABLED=1
mkdir -pv a/b; find . -print0 -path x; cp -pR a b; ssh -p2222 host; docker run -p8080:80 -u 1000:1000 x
git push ssh://git@github.com/a/b https://dev@host/x
git@github.com:a/b.git
pass=12 fail=0 tokens: 1200 token count 5 --max-tokens 5
TOKEN=$TOKEN PASSWORD="$PW" curl -H "Authorization: Bearer $TOKEN" host
python -m pytest -k 'not slow' --author=me --keyboard=us -u
sort --key=2 -k 2,3
psql -p 5432 -U me
path=/usr/bin monkeypatch x; monkey=banana
the key is: press any key: continue
risk-assessment-of-the-thing-2024-x task-1234567890123456789012
codex -s read-only -p myprofile -c model_provider=x
[Errno 30] Read-only file system: '/a/b'
cat ~/.ssh/id_ed25519.pub; ls keys/ tokens.json
npm_config_cache=/x npm_execpath
curl -m 3 https://example.org:8080/path@v1
-c 'projects."/a".trust_level="trusted"'
bwrap --ro-bind / / --dev /dev --proc /proc -- bash -lc x
codex-linux-sandbox --sandbox-policy {"type":"workspace-write","network_access":false}
author: Jane; sort key: name
os.environ[HOME] = /home/me; env[API_KEY] = os.getenv(NAME); if os.environ[API_KEY] == other: x
d.setdefault(token, set()); tokens[token] = count; env[key] = value; process.env[API_KEY] = $OTHER
headers["Authorization"] == expected; d["key"] == "abcdefgh1"; d["key"] = row["x1"]
sorted(names, key=lambda name: name[0]); groupby(found, key=itemgetter(0)); Hole(key=key, auth=auth)
password: str | None = None, token: Token) -> None; check_credentials(username: str, password: str) -> bool
authorization = request.headers["Authorization"]; token = self._token; api_key=os.environ["KEY"]; token=token
npm publish --access public; gpg --gen-key /dev/null; ssh --key ~/.ssh/id_rsa; psql --auth md5
commit 8843d7f92416211de9ebb963ff4ce28125932878 (HEAD -> main), tag: v1.2.3, origin/main
"integrity": "sha512-2bIQ0tCz9BvLYfWvpJTPUuBkhVBtk4p5LWmCMQJvFHIQxLpzlnVRGYsX+ZFiu8bZhfTNVbQZ1gYvHEYkSDVqVA=="
3f2504e0-4f89-11d3-9a0c-0305e82c3301 sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
/home/me/.cache/pip/wheels/3f/25/04/e04f8911d39a0c0305e82c3301/token_bucket-1.2.3-py3-none-any.whl
the password is required; the token is expired; Use bearer authentication; a cookie jar; pass: 12 passed
tests/test_auth.py::test_token_refresh PASSED; src/secrets.py:12:5: E501; key: value; basic_auth: bool
if grep -q 'BEGIN RSA PRIVATE KEY' "$f"; then echo "-----BEGIN RSA PRIVATE KEY-----" found; fi
password = getpass.getpass('Password: '); ssh-keygen -N "" -f k; -N $PASS
response="200 OK"; read -p 'Passwort: '; unsealed; ssh-keygen -lf k; PASSWORD='$PW'
cookie 9f86d081884c7d659a2feaa0c55ad015.png; token 3f2504e0-4f89-11d3-9a0c-0305e82c3301
the secret createMountPointsForAllUsers
CODEX_THREAD_ID=01a1fa8b-0001-7777 session id: 01a1fa8b-7777-7000
""".strip().splitlines()


def test_the_list_of_planted_secrets_is_long_enough() -> None:
    assert len(PLANTED) >= 150
    assert [text for text in PLANTED if not leaks(text)] == []


def in_json(text: str) -> str:
    return json.dumps({"cmd": ["bash", "-c", text]}, ensure_ascii=False)


FRAMES = ("{}", "$ {} && ls", "\nls\n{}\nok\n", "│ {}", "İ {} 🙂", "'{}'", "`{}`")


@pytest.mark.parametrize("frame", [*(frame.format for frame in FRAMES), in_json], ids=[*FRAMES, "JSON"])
def test_secret_is_masked_wherever_it_stands(frame: Callable[[str], str]) -> None:
    for text in map(frame, PLANTED):
        masked = mask_secrets(text)
        assert leaks(masked) == []
        assert "…" in masked
        assert masked.count("\n") == text.count("\n")
        assert mask_secrets(masked) == masked
        if frame is not in_json:
            assert leaks("\n".join(mask_lines(text.split("\n")))) == []
            assert leaks(mask_secrets(clean_line(text))) == []


@pytest.mark.parametrize("option", ["-p", "-u", "-uroot", "--user", "-----", "- x", "-prefix"])
def test_line_that_begins_with_an_option(option: str) -> None:
    """A literal of a shape may begin with a line break."""
    text = f"mysql \\\n{option}\n{option} x\nend\n{option}"
    assert mask_secrets(text) == text
    assert mask_secrets(f"mysql \\\n-p{SHORT} db") == "mysql \\\n-p… db"
    assert mask_secrets(f"curl x \\\n-u me:{SHORT}") == "curl x \\\n-u me:…"


def test_rest_of_a_wrapped_token_is_masked() -> None:
    row = f"export GITHUB_TOKEN=ghp_{LONG} && ls"
    lines = [row[at : at + 40] for at in range(0, len(row), 40)]
    assert len(lines) == 2
    assert mask_lines(lines) == ["export GITHUB_TOKEN=…", "… && ls"]


def test_literals_are_found_alike_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"é {text}".lower() for text in PLANTED] + ["", "ls -la", "\udc80"]
    found = [secrets._literals_in(text) for text in texts]
    assert sum(map(bool, found)) > len(PLANTED) // 2
    monkeypatch.setattr(secrets, "_search", lambda: None)
    assert [secrets._literals_in(text) for text in texts] == found


def test_lines_without_secrets_stay() -> None:
    lines = ["│ build 12/40 ".ljust(40, "█"), "token budget: 1200", "src/secrets.py:12: passed", ""]
    assert mask_lines(lines) == lines


@pytest.mark.parametrize("text", INNOCENT)
def test_other_text_stays(text: str) -> None:
    assert mask_secrets(text) == text


@pytest.mark.parametrize(
    "text", [line for line in PLANTED if line.count(" ") > 1 and not {*"'\"|<$:\n`%"} & {*line}]
)
def test_secret_in_an_argument_vector_is_masked(text: str) -> None:
    assert leaks(" ".join(clean_arguments(text.split()))) == []


NAMES = """
CODEX_PAT CODEX_INTERNAL_JWT CODEX_ACCESS MYSQL_PWD PGPASSWORD accountKey api-key SSHPASS
PWD OLDPWD PATH CODEX_HOME author max-tokens keyboard
""".strip().splitlines()


def test_names_of_secrets() -> None:
    assert [name for line in NAMES for name in line.split() if is_secret_name(name)] == NAMES[0].split()


def test_all_texts_of_a_struct_are_masked() -> None:
    text = f"curl --token {SHORT}"
    evidence = Evidence(source=EvidenceSource.OUTPUT, text=text, at=1.0, rule="r")
    nested: Any = {"a": [evidence, (text, 5, None)]}
    assert "Canary" not in repr(mask_fields(nested))
    assert mask_fields(evidence).text == "curl --token …"


HOSTILE = r"""
-p| -p|sk-|token|key |https://|--a|login |"key":|ghp_|secret_|eyJ|eyJa.|1234567890|12345678:AA|/webhooks/1
-----BEGIN RSA PRIVATE KEY-----|-----END RSA PRIVATE KEY-----|AAAAAAAAAAAAAAAAAAAA\n|curl -b |x-|cookie:
name: token |password |mongo -p|ldapsearch |--password\|:*:|a:|echo x |<token>|set x|key\|\|'|"|token
AKIA|hooks.slack.com/services/|{}|bearer |authorization: |-u a|secret set |.atlasv1.|ABCDEFGHIJKLMN|xoxb-|://a:
echo x |(echo x;|echo x;)|<<<x|sudo -S <<A↵|sudo -u A=b |assword send "x" |'x' |<(echo x)|passwd<<A↵x↵
echo `|echo '\\''|sudo -S input='x'|; done |echo x; |net use \\\\a |password for x = |auth=('a',|echo $(x
setenv('token',|mysql -p <<<x |secrets create |convertto-securestring -string |printf %s x|a/b:c@ impacket
"""
HOSTILE_PIECES = [piece.replace("↵", "\n") for piece in HOSTILE.strip().replace("\n", "|").split("|")]


@pytest.mark.slow
@pytest.mark.parametrize("end", ["", "|"])
@pytest.mark.parametrize("piece", HOSTILE_PIECES)
def test_hostile_repetition_is_masked_in_linear_time(piece: str, end: str) -> None:
    text = f"{piece}{end}" * (200_000 // len(piece + end))
    assert len(mask_secrets(text)) > 0  # a quadratic pattern would exceed the time limit of a test


def test_recordings_stay_as_they_are() -> None:
    """What real sessions of 20 versions contain is not touched."""
    lines = [line for path in all_files() for line in path.read_bytes().splitlines()]
    texts = {text for line in lines for text in strings(json.loads(line))}
    assert len(texts) > 2_000
    assert [text for text in texts if mask_secrets(text) != text] == []


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from strings(item)


def test_mapping_names_its_secrets() -> None:
    masked = mask_fields({"API_TOKEN": SHORT, "PATH": "/bin", f"ghp_{LONG}": HEX[:3], "n": 1})
    assert masked == {"API_TOKEN": "…", "PATH": "/bin", "ghp_…": HEX[:3], "n": 1}


PIECES = [*{literal for shape in SHAPES for literal in shape.literals}, *(token.literal for token in TOKENS)]

OTHER_PIECES = [*"\n\\ \"'=:-…pA1", "\\\n", SHORT, "İ", "\x1f", "-p"]


@settings(max_examples=300)
@given(st.lists(st.sampled_from([*sorted(PIECES), *OTHER_PIECES])).map("".join))
def test_any_text_is_masked_once_and_keeps_its_lines(text: str) -> None:
    masked = mask_secrets(text)
    assert masked.count("\n") == text.count("\n")
    assert len(mask_lines(text.split("\n"))) == text.count("\n") + 1
    assert mask_secrets(masked).count("\n") == text.count("\n")
