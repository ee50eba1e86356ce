"""Secrets are masked by their shapes, in every text that agentdash writes; other texts stay as they are."""

from __future__ import annotations

from typing import Any

import pytest

from agentdash.collect.processes.env_filter import clean_arguments
from agentdash.model.evidence import Evidence, EvidenceSource
from agentdash.model.secrets import is_secret_name, mask_fields, mask_secrets

SECRET = "S3cretCanary01"

PLANTED = f"""
curl -H 'Authorization: Basic {SECRET}' https://host/
curl -H "Authorization: token {SECRET}" host
curl -H 'Authorization: Bearer {SECRET}' host
curl -H 'X-Api-Key: {SECRET}' host
curl -u user:{SECRET} https://host
curl -d '{{"api_key": "{SECRET}"}}' host
curl -d "{{\\"api_key\\": \\"{SECRET}\\"}}" host
curl --cookie session={SECRET} host
curl --oauth2-bearer {SECRET} host
PGPASSWORD={SECRET} psql
MYSQL_PWD={SECRET} mysql
SSHPASS={SECRET} sshpass -e ssh host
mysql -p{SECRET} db
mysql -u root -p'{SECRET}' db
docker login -p {SECRET}
docker login --password {SECRET} -u me
echo {SECRET} | docker login --password-stdin
gh auth login --with-token <<< {SECRET}
redis-cli -h host -a {SECRET}
aws configure set aws_secret_access_key {SECRET}
set -x PASSWORD {SECRET}
$env:TOKEN="{SECRET}"
use sk-ant-{SECRET}abcd
use sk-proj-{SECRET}
use sk-{SECRET}{SECRET}
use ghp_{SECRET}abcd
use github_pat_{SECRET}
use glpat-{SECRET}
use AKIAS3CRETCANARY01AB
use xoxb-{SECRET}
use hf_{SECRET}
use npm_{SECRET}
use AIza{SECRET}abcdef
use SG.{SECRET}.{SECRET}
use eyJ{SECRET}.eyJ{SECRET}.{SECRET}
-----BEGIN RSA PRIVATE KEY-----\\n{SECRET}
tool --auth={SECRET}
tool --token {SECRET}
tool "--token {SECRET}"
tool --client-secret:{SECRET}
tool --api-key={SECRET}
tool --password={SECRET}
GITHUB_PAT={SECRET}
TOKEN={SECRET}
pass={SECRET}
AccountKey={SECRET};Endpoint=host
OPENAI_API_KEY={SECRET} codex
ANTHROPIC_AUTH_TOKEN='{SECRET}' claude
export aws_secret_access_key="{SECRET}"
client_secret = {SECRET}
password: {SECRET}
"password" : '{SECRET}'
cookie: session={SECRET}
Cookie: a=b; session={SECRET}
//host/:_authToken={SECRET}
machine host login me password {SECRET}
https://{SECRET}@host/x
git clone https://user:{SECRET}@host/x
DATABASE_URL=postgres://me:{SECRET}@host/x
https://host/x?sig={SECRET}&a=b
https://host/?api_key={SECRET}
https://host/?access_token={SECRET}&b=1
https://host/?X-Amz-Signature={SECRET}
""".strip().splitlines()

INNOCENT = """
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
CODEX_THREAD_ID=01a1fa8b-0001-7777 session id: 01a1fa8b-7777-7000
""".strip().splitlines()


def test_the_list_of_planted_secrets_is_long_enough() -> None:
    assert len(PLANTED) >= 47
    assert all("canary01" in line.lower() for line in PLANTED)


@pytest.mark.parametrize("text", PLANTED)
def test_secret_is_masked(text: str) -> None:
    masked = mask_secrets(text)
    assert "canary" not in masked.lower()
    assert "…" in masked
    assert mask_secrets(masked) == masked


@pytest.mark.parametrize("text", INNOCENT)
def test_other_text_stays(text: str) -> None:
    assert mask_secrets(text) == text


@pytest.mark.parametrize(
    "text", [line for line in PLANTED if " " in line and not {*"'\"|<$:"} & {*line} and "BEGIN" not in line]
)
def test_secret_in_an_argument_vector_is_masked(text: str) -> None:
    assert "canary" not in " ".join(clean_arguments(text.split())).lower()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *(
            (name, True)
            for name in ("CODEX_PAT", "CODEX_INTERNAL_JWT", "CODEX_ACCESS", "MYSQL_PWD", "PGPASSWORD")
        ),
        *(
            (name, True)
            for name in ("CODEX_SESSION_COOKIE", "accountKey", "api-key", "CODEX_BEARER", "SSHPASS")
        ),
        *(
            (name, False)
            for name in ("PWD", "OLDPWD", "PATH", "CODEX_HOME", "author", "max-tokens", "keyboard")
        ),
    ],
)
def test_names_of_secrets(name: str, expected: bool) -> None:
    assert is_secret_name(name) is expected


def test_all_texts_of_a_struct_are_masked() -> None:
    text = f"curl --token {SECRET}"
    evidence = Evidence(source=EvidenceSource.OUTPUT, text=text, at=1.0, rule="r")
    nested: Any = {"a": [evidence, (text, 5, None)]}
    assert "Canary" not in repr(mask_fields(nested))
    assert mask_fields(evidence).text == "curl --token …"


def test_structs_without_secrets_stay_the_same_object() -> None:
    evidence = Evidence(source=EvidenceSource.OUTPUT, text="ls", at=1.0, rule="r")
    assert mask_fields(evidence) is evidence


@pytest.mark.parametrize(
    "piece", ["-p", " -p", "sk-", "token", "key ", "https://", "--a", "login ", '"key":']
)
def test_hostile_repetition_is_masked_in_linear_time(piece: str) -> None:
    text = piece * (200_000 // len(piece))
    assert len(mask_secrets(text)) > 0  # a quadratic pattern would exceed the time limit of a test
