"""Texts with planted secrets: `{S}` short, `{L}` long, `{U}` upper case, `{H}` hexadecimal."""

import re

SHORT = "S3cretCanary01"
LONG = "S3cretCanary01xYz9876543210AbCdEfGh"
HEX = "5ec7e7ca4a71deadbeef0123456789ab"
_PARTS = re.compile("canary|5ec7e7ca|ca4a71dead|xyz9876|987654|deadbeef", re.IGNORECASE)
"""What a whole secret and its parts contain."""

_LINES = r"""
tgp_v1_{L} pcsk_6xY2_{L} tvly-dev-{L} wandb_v1_{L} pylf_v1_us_{L}
jina_{H}{L} fw_{L} sk_{H} fc-{H} e2b_{H}deadbeef squ_{H}deadbeef cpk_{H}.{H}
ABSK{L}{L}= AQ.Ab8R{L} sgp_{H}_{H} apify_api_{L} polar_oat_{L} crsr_{H}{H}
vck_{L} sb_secret_{L} napi_{L} npg_{S} vercel_blob_rw_{L} HRKU-AA{L}{L} CFPAT-{L}{L}
xkeysib-{H}{H}-{L} rzp_live_{S} phx_{L} LTAI5t{S} EZAK{L} prod:happy-otter-123|{L}
tid={H};exp=1763;proxy-ep=y:{H}
{H}-us12
glimt-{L} glwt-{L} sk_org_live_{L} mfa.{L}{L}{L} AGE-SECRET-KEY-PQ-1{U}{U}
{"key":"untrusted comment: minisign\nRWRTY0Iy{L}{L}{L}"} "ok\nghp_{L}"
aws secretsmanager create-secret --name x --secret-string {S}
aws ssm put-parameter --name x --type SecureString --value {S}
http -a bob:{S} example.org
das Passwort ist {S}
os.environ[API_KEY] = {S}
import os; os.environ[DB_PASSWORD]={S}; main()
process.env[API_KEY] = {S}
$_ENV[API_KEY]={S}
$ENV{API_KEY} = "{S}";
os.putenv(API_KEY, {S}); os.environ.setdefault(API_KEY, {S})
headers["Authorization"] = "{S}"; env["OPENAI_KEY"] = "{S}"
ENV API_TOKEN {S}
echo {S} | sudo -S ls
printf '%s\n' {S} | sudo -S ls
sudo -S ls <<< '{S}'
ConvertTo-SecureString '{S}' -AsPlainText
usermod -p {S} u
https://api.telegram.org/bot123456789:AAF{L}/getMe
twine upload -p {S} d
echo 'root:{S}' | chpasswd
lftp -u me,{S} h
nmcli dev wifi connect x password {S}
wpa_passphrase x {S}
mosquitto_pub -u me -P {S} -t x
curl -H "X-Auth-Token: {S}" h
{'Authorization': 'Bearer {S}'}
headers = {"Authorization": "Basic {S}"}
Authorization: AWS4-HMAC-SHA256 Credential=x/y, Signature={S}
authorization: {S}
Set-Cookie: sid={S}; Path=/; HttpOnly
document.cookie = "sid={S}"
requests.get(u, cookies={'sid': '{S}'})
curl -b 'sid={S}' https://h
redis://:{S}@host:6379/0
mongodb+srv://u:{S}@cluster0.example.net/db
amqp://u:{S}@h
postgresql://u:{S}@h/db?sslmode=require
jdbc:postgresql://h/db?user=u&password={S}
psql "host=h user=u password={S}"
Server=h;Database=d;User Id=u;Password={S};
DefaultEndpointsProtocol=https;AccountName=a;AccountKey={L}==;
sshpass -p {S} ssh h
sshpass -p'{S}' ssh h
mysql -uroot -p{S} db
mysqldump -u root --password={S} db
mongo -u u -p {S} db
openssl rsa -in k -passin pass:{S}
openssl enc -aes-256-cbc -k {S} -in f
mc alias set minio http://h AK {S}
npm config set //registry.example.org/:_authToken {S}
7z x -p{S} a.7z
zip -P {S} a.zip b
unzip -P {S} a.zip
htpasswd -b f u {S}
ldapsearch -D cn=x -w {S}
smbclient //h/s -U u%{S}
wget --user=u --password={S} u
wget --http-password={S} u
curl --user 'u:{S}' h
curl -uu:{S} h
kubectl --token={S} get pods
kubectl config set-credentials x --token={S}
vault login {S}
vault login hvs.{L}
az login --service-principal -u x -p {S} --tenant t
docker login -u u -p {S} r
echo '{S}' | docker login -u u --password-stdin
echo -n {S} | gh secret set X
gh secret set X --body {S}
heroku config:set API_KEY={S}
export SECRET_KEY_BASE={S}
DJANGO_SECRET_KEY='{S}'
set SECRET={S}
setx API_TOKEN {S}
$env:API_TOKEN = '{S}'
ENV API_TOKEN={S}
ARG NPM_TOKEN={S}
api_token: {S}
apiKey: '{S}'
api-key = "{S}"
secretKey={S}
"client_secret":"{S}"
\"client_secret\":\"{S}\"
&client_secret={S}&x=1
?token={S}
/?key={S}
#access_token={S}&token_type=bearer
password={S}
passwd: {S}
Password: {S}
my password is {S}
the api key is {S}
login: u password: {S}
db_pass="{S}"
DB_PASSWORD: "{S}"
spring.datasource.password={S}
<password>{S}</password>
<add key="ApiKey" value="{S}" />
h:5432:db:u:{S}
machine h login u password {S}
//npm.example.com/:_authToken={S}
_auth={S}
_password={S}
"auth": "{L}=="
"identitytoken": "{S}"
client-key-data: {L}
aws_access_key_id = AKIAS3CRETCANARY01AB
aws_secret_access_key = {L}
aws_session_token={L}
ASIAS3CRETCANARY01AB
"private_key": "-----BEGIN PRIVATE KEY-----\n{L}\n-----END PRIVATE KEY-----\n"
FlyV1 fm2_{L}
tok: eyJhbGciOi{S}.eyJzdWIi{S}.{L}
eyJhbGciOi{S}.eyJzdWIi{S}.
ssh-keygen -t ed25519 -N 'my {S}' -f k
ssh-keygen -p -P {S} -N {S} -f k
rclone obscure {S}
restic --password-command "echo {S}" snapshots
RESTIC_PASSWORD_COMMAND='printf {S}'
rsync --password-file=<(echo {S}) a b
curl -H 'Authorization: Digest username="u", nonce="n", uri="/", response="{H}"' h
PW='a'\''{S}'
export PASSWORD='it'"'"'s{S}'
bash -c 'PASSWORD='\''{S}'\'' ls'
bash -c 'PASSWORD='"'"'{S}'"'"' ls'
PASSWORD="a\"{S}"
PASSWORD="it's{S}"
(TOKEN=$'{S}\n')
curl -H 'Authorization: Bearer '"{S}" h
curl --user u:"a {S}" h
echo {S} | gpg --batch --passphrase-fd 0 -c f
echo -e "{S}\n{S}" | smbpasswd -s -a bob
gpg --passphrase-fd 0 -d f <<< "{S}"
secret-tool store x <<< {S}
vault operator unseal {L}
(Unseal Key 1: {L})
PresharedKey = {L}=
psk="{S}"
cargo login {L}
redis-cli AUTH {S}
ipmitool -I lanplus -U u -P {S} chassis status
rdesktop -u u -p {S} h
bw unlock {S}
Server=s;Uid=u;Pwd={S};
Das Kennwort lautet {S}
contraseña: {S}
пароль: {S}
密码：{S}
パスワード: {S}
Your temporary password is: {S}
auth_token {H}
using API key {H}, as before
the secret {L}.
https://example.org/home/ghp_{L}
GET /v1/tokens/ghp_{L}
/home/me:ghp_{L} /home/me/x?t=ghp_{L}
https://ghp_{L}@example.org/home/
https://x@/home/ghp_{L} //home/ghp_{L}
/home/me/ghp_{L}/x
"""

_TOKENS = """
eyJhbGciOiJkaXIifQ..{L}.{L}.{L} AGE-SECRET-KEY-1{U} sk-ant-api03-{L} sk-ant-oat01-{L} sk-proj-{L}
sk-or-v1-{H} sk-{H} sess-{L} ghp_{L} gho_{L} ghs_{L} github_pat_{L} glpat-{L} xoxb-1234-5678-{L}
xoxe.xoxp-1-{L} xapp-1-A-{L} https://hooks.slack.com/services/T00000000/B00000000/{L}
https://discord.com/api/webhooks/123456789012345678/{L}
https://discordapp.com/api/webhooks/123456789012345678/{L} 123456789:AA{L} npm_{L} pypi-AgEI{L} hf_{L}
AIzaSy{L} ya29.{L} 1//0{L} GOCSPX-{L} sk_live_{L} rk_test_{L} pk_live_{L} whsec_{L} dop_v1_{H}{H} shpat_{H}
glsa_{L} glc_{L} dckr_pat_{L} hvs.{L} hvb.{L} sq0atp-{L} lin_api_{L} ntn_{L} secret_{L} tskey-auth-{L}
nvapi-{L} gsk_{L} xai-{L} r8_{L} pplx-{L} dapi{H} SG.{L}.{L} key-{H} figd_{L} pscale_tkn_{L} pscale_pw_{L}
sbp_{H} nfp_{L} fo1_{L} sntrys_{L} sntryu_{H} NRAK-{U} PMAK-{H} pul-{H} abcdefghijklmn.atlasv1.{L}
ATATT3xFf{L} ATBB{L} EAACEdEose0cBA{L} lsv2_pt_{H}_x ops_eyJ{L} dp.st.prd.{L} fly_pat_{L} cfut_{L}
rubygems_{H} tfp_{L} vcp_{L} CCIPAT_{L} bkua_{H} glrt-{L}
"""
"""Known by their form: each is a text of its own."""

_BLOCKS = (
    "-----BEGIN OPENSSH PRIVATE KEY-----\n{L}\n{L}\n-----END OPENSSH PRIVATE KEY-----",
    "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\n{L}\n{L}",
    "{L}\n{L}\n-----END PGP PRIVATE KEY BLOCK-----",
    "PuTTY-User-Key-File-3: ssh-ed25519\nPrivate-Lines: 2\n{L}\n{L}\nPrivate-MAC: x",
    "- name: API_TOKEN\n  value: {S}",
    "Password:\n{S}",
    "cat > f <<EOF\npassword: canarypassphrase\nuser: me\nEOF",
    "docker login \\\n  --password \\\n  {S}",
)


def _fill(text: str) -> str:
    for name, value in {"S": SHORT, "L": LONG, "U": LONG.upper(), "H": HEX}.items():
        text = text.replace(f"{{{name}}}", value)
    return text


PLANTED = [_fill(text) for text in (*_LINES.strip().splitlines(), *_TOKENS.split(), *_BLOCKS)]


def leaks(text: str) -> list[str]:
    """Return the parts of planted secrets in a text, with what stands around them."""
    return [text[max(0, match.start() - 60) : match.end() + 30] for match in _PARTS.finditer(text)]
