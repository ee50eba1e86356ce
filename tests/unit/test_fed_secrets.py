"""Secrets on their way into a program that reads one are masked, at any depth of quoting; what is no secret
stays."""

import json
import shlex
from collections.abc import Callable

import pytest

from agentdash.model.secrets import mask_secrets

SECRET = "hunter2"

FED = r"""
printf '%s\n' 'hunter2' | sudo -S -p '' apt-get update
printf 'hunter2\n\n' | sudo -S -p '' ./run
(echo hunter2; cat) | sudo -S ls
{ printf 'x %s\n' hunter2; sleep 1; } | sudo -kS ls
while true; do echo hunter2; done | sudo -u bob --stdin -p "" ls
echo hunter2 2>/dev/null | tr -d x | sudo -H -u postgres -S psql
echo 'a; hunter2 | b' | sudo -S ls
sudo -S -p '' kill 12198 <<'EOF'↵hunter2↵EOF
sudo -S ls <<< 'hunter2'
sudo -S ls < <(echo hunter2)
{ sudo -S ls; } 2>&1 <<< hunter2
cat <<EOF | sudo -S bash↵hunter2↵EOF
ssh h 'cd /x; echo hunter2 | sudo -S ls'
ssh -t h "sudo -S ls; id" <<< hunter2
echo hunter2 | ssh h 'cd /x; sudo -S ls'
echo hunter2 | su -c id
su - root -c 'id' <<< "hunter2"
printf "hunter2\nhunter2\n" | passwd u
passwd <<EOF↵hunter2↵hunter2↵EOF
echo "u:hunter2" | sudo chpasswd
chpasswd <<EOF↵u:hunter2↵v:hunter2↵EOF
cryptsetup luksOpen d x <<< hunter2
echo -n hunter2 | docker secret create x -
docker secret create x - <<EOF↵hunter2↵EOF
printf %s hunter2 | docker login --password-stdin -u me
gh auth login --with-token <<< hunter2
echo hunter2 | vault kv put secret/x password=-
echo hunter2 | mysql -u root -p db
mysql -u root -p <<< hunter2
echo -n hunter2 | base64
openssl enc -aes-256-cbc -pass stdin <<< hunter2
gcloud secrets versions add x --data-file=- <<< hunter2
wg set wg0 private-key <(echo hunter2)
restic -r x --password-file <(echo hunter2) snapshots
echo hunter2 | \↵  sudo -S ls
subprocess.run(['sudo', '-S', 'ls'], input='hunter2\n', text=True)
p = Popen(["sudo", "-S", "ls"]); p.communicate(b"hunter2\n")
python3 -c "print('hunter2')" | sudo -S ls
Write-Output 'hunter2' | docker login --password-stdin
'hunter2' | ConvertTo-SecureString -AsPlainText -Force
expect -c 'spawn ssh u@10.0.0.5; expect assword; send "hunter2\r"; interact'
expect <<EOF↵spawn ssh h↵expect "*?assword:*"↵send -- "hunter2\r"↵EOF
child.expect('[Pp]assword:'); child.sendline('hunter2')
fabric.Responder(pattern=r'\[sudo\] password', response='hunter2\n')
""".strip()

OTHER = r"""
ConvertTo-SecureString -String "hunter2" -AsPlainText -Force
New-Object System.Net.NetworkCredential('u','hunter2')
[System.Net.NetworkCredential]::new("", "hunter2")
$env:X_TOKEN='hunter2'
$env:GH_PAT = "hunter2"
net user bob hunter2 /add
net use Z: \\srv\share hunter2 /user:dom\bob
net use \\srv\share /user:dom\bob hunter2
schtasks /create /ru bob /rp hunter2
az keyvault secret set --vault-name v --name n --value hunter2
twine upload -u u -p hunter2 dist/*
doctl auth init -t hunter2
os.environ["API_KEY"] = "hunter2"
os.environ.setdefault("API_KEY", "hunter2")
curl https://api.telegram.org/bot123456789:AAFhunter2k81Kd02MvLw73abcdefghijk/getMe
SET PASSWORD FOR 'x'@'h' = 'hunter2';
ALTER USER 'x'@'h' IDENTIFIED WITH mysql_native_password BY 'hunter2';
_auth = hunter2
ngrok config add-authtoken hunter2
poetry config pypi-token.pypi hunter2
poetry config http-basic.foo user hunter2
usermod -p hunter2 u
xfreerdp /u:a /p:hunter2 /v:h
requests.get(u, auth=('u', 'hunter2'))
smtp.login('u@h', 'hunter2')
mysqladmin -u root password hunter2
secretsdump.py dom/user:hunter2@10.0.0.1
""".strip()

CONTROLS = r"""
echo hello | sudo tee f
printf x | grep -S
cat <<EOF | sudo tee f↵hello↵EOF
cat <<EOF > f↵hello↵EOF
sudo -S true; cat <<EOF > f↵hello↵EOF
echo $PW | sudo -S ls
printf '%s\n' "$SUDO_PW" | sudo -S ls
printf "$(pass show x)" | sudo -S ls
echo "deploy:$PW" | chpasswd
sudo -S ls <<< "$PW"
sudo -S ls <<EOF↵$PW↵EOF
cat token.txt | docker login --password-stdin
echo "secret set" | grep 'secret set'
echo 'u:x' | sudo tee -a /etc/passwd
echo "SELECT 1 FROM t" | mysql -u root -p$PW db
mysql -u root -p db <<< "SELECT 1"
echo yes | sudo -S ls
echo hello | base64
echo aGVsbG8x | base64 -d
getent passwd bob; cat <<EOF > f↵hello↵EOF
identified as "hello"
echo foo | sudo grep -S x
echo hello | ssh h sudo tee f
psql -c 'SELECT 1' <<< hello
enter the password, then send "hello" to the list
net user growth of 5 %
net user bob /delete
net use Z: /delete
client.login(user, password)
auth=(user, password)
os.environ["API_KEY"] = key
git log --author="su" | less
make -p 8080; mkdir -p a1/b2
wg show; passwd --status bob; sudo -v
""".strip()


def lines(table: str) -> list[str]:
    return [line.replace("↵", "\n") for line in table.splitlines()]


FRAMES: dict[str, Callable[[str], str]] = {
    "alone": str,
    "later": lambda text: f"cd /x\n{text}\nls",
    "json": lambda text: json.dumps({"cmd": f"cd /x\n{text}\nls"}),
    "json in json": lambda text: json.dumps(json.dumps({"cmd": f"cd /x\n{text}"})),
    "bash": lambda text: f"bash -lc {shlex.quote(text)}",
    "vector": lambda text: json.dumps(["bash", "-lc", text]),
}


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("text", [*lines(FED), *lines(OTHER)])
def test_secret_is_masked_at_any_depth(text: str, frame: str) -> None:
    framed = FRAMES[frame](text)
    masked = mask_secrets(framed)
    assert SECRET in framed
    assert SECRET not in masked
    assert masked.count("\n") == framed.count("\n")
    assert mask_secrets(masked) == masked


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("text", lines(CONTROLS))
def test_what_is_no_secret_stays(text: str, frame: str) -> None:
    framed = FRAMES[frame](text)
    assert mask_secrets(framed) == framed


def test_what_surrounds_a_secret_stays() -> None:
    assert (
        mask_secrets("printf '%s\\n' 'x y' | sudo -S -p '' ls /a")
        == "printf '%s\\n' '…' | sudo -S -p '' ls /a"
    )
    assert mask_secrets("sudo -S bash <<EOF\nx1\nmake\nEOF\nls") == "sudo -S bash <<EOF\n…\nmake\nEOF\nls"
    assert mask_secrets("(sleep 1; echo x1; cat) | passwd && ls") == "(sleep 1; echo …; cat) | passwd && ls"
