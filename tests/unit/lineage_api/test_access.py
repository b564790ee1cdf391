"""Who may ask: tokens, host names, origins; and which of them the settings make."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

from lineage_api.access import OPEN_PATHS, TOKEN_FILE, Access, AccessError, from_settings
from lineage_api.app import create_app
from lineage_service.settings import Settings
from tests.support.api_client import Client
from tests.support.flights_and_weather import APP, materialize, questions

TOKEN = "a-token-that-nobody-guesses"
TRACE = f"/api/applications/{APP}/trace?direction=backward&node=8&partition=0&offset=0"
GRAPH = TRACE.replace("/trace?", "/trace/graph?")
ELSEWHERE = "https://notes.example.org"


def client_of(access: Access) -> Client:
    return Client(create_app(questions(), materialize=materialize, access=access))


@pytest.fixture(scope="module")
def locked() -> Client:
    return client_of(Access.of(TOKEN))


@pytest.mark.parametrize(
    "path", ["/api/applications", TRACE, "/api/lag", "/metrics", "/readyz", "/nowhere", "/docs/x", "/api/"]
)
def test_without_the_token_is_a_401_that_says_how_to_give_it(locked, path):
    answer = locked.get(path)
    assert (answer.status_code, answer.headers["content-type"]) == (401, "application/problem+json")
    assert answer.headers["www-authenticate"] == 'Bearer realm="lineage"'
    assert answer.headers["cache-control"] == "no-store"
    assert answer.json()["detail"].startswith("This service requires its token")


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": f"Bearer {TOKEN}"},
        {"Authorization": f"bearer  {TOKEN} "},
        {"X-API-Key": TOKEN},
        {"Authorization": "Basic bmFtZTpwYXNz", "X-API-Key": TOKEN},
    ],
)
def test_the_token_opens_in_either_header(locked, headers):
    assert locked.get("/api/applications", headers=headers).status_code == 200
    assert locked.request("HEAD", TRACE, headers=headers).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": f"Bearer {TOKEN}x"},
        {"Authorization": f"Bearer {TOKEN[:-1]}"},
        {"Authorization": "Bearer wrong", "X-API-Key": TOKEN},
        {"X-API-Key": "wrong"},
        {"X-API-Key": "\N{SNOWMAN}".encode()},
    ],
)
def test_another_token_is_refused_and_not_repeated(locked, headers):
    answer = locked.get("/api/applications", headers=headers)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].endswith('error="invalid_token"')
    assert "wrong" not in answer.text
    assert TOKEN not in answer.text


@pytest.mark.parametrize("path", sorted(OPEN_PATHS))
def test_what_shows_nobodys_lineage_is_open(locked, path):
    assert locked.get(path).status_code == 200


def test_the_files_of_the_page_are_open(locked):
    # Not one that is there: the page need not be built.
    assert locked.get("/static/nothing.js").status_code == 404


@pytest.mark.parametrize(
    "path", ["/static/../api/applications", "/healthz/", "//api/applications", "/%2e/api/lag"]
)
def test_no_spelling_of_an_address_goes_around_the_token(locked, path):
    assert locked.get(path).status_code in (401, 404)


def test_nothing_that_prints_the_access_shows_the_token():
    assert TOKEN not in repr(Access.of(TOKEN))


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:8080", "127.0.0.1:8080", "[::1]:80", "notes.example.org."]
)
def test_the_service_answers_to_its_own_names(host):
    access, _ = from_settings(Settings(api_hosts=" notes.example.org, 192.0.2.7"), "127.0.0.1")
    assert client_of(access).get("/healthz", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:8080", "", "[::2]"]
)
@pytest.mark.parametrize("path", ["/", "/healthz", "/api/applications"])
def test_on_a_loopback_address_a_foreign_name_is_refused(host, path):
    access, _ = from_settings(Settings(), "127.0.0.1")
    answer = client_of(access).get(path, headers={"Host": host})
    assert (answer.status_code, answer.headers["content-type"]) == (421, "application/problem+json")
    assert "LINEAGE_API_HOSTS" in answer.json()["detail"]


def test_no_site_may_read_unless_it_is_named():
    answer = client_of(Access()).get("/api/applications", headers={"Origin": ELSEWHERE})
    assert not [name for name in answer.headers if name.startswith("access-control-")]


def test_a_named_site_may_read_and_write_and_others_may_not():
    client = client_of(Access.of(TOKEN, None, ELSEWHERE))
    preflight = {
        "Origin": ELSEWHERE,
        "Access-Control-Request-Method": "GET",
        "Access-Control-Request-Headers": "authorization",
    }
    answer = client.request("OPTIONS", "/api/applications", headers=preflight)
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == ELSEWHERE
    assert "access-control-allow-credentials" not in answer.headers
    other = client.request(
        "OPTIONS", "/api/applications", headers={**preflight, "Origin": "https://evil.example"}
    )
    assert "access-control-allow-origin" not in other.headers

    headers = {"Origin": ELSEWHERE, "Sec-Fetch-Site": "cross-site", "X-API-Key": TOKEN}
    read = client.get("/api/applications", headers=headers)
    assert read.headers["access-control-allow-origin"] == ELSEWHERE
    assert "Origin" in read.headers["vary"]
    assert "ETag" in read.headers["access-control-expose-headers"]
    assert client.post(GRAPH, headers=headers).status_code == 200
    assert client.post(GRAPH, headers={**headers, "Origin": "https://evil.example"}).status_code == 403
    # A problem can be read, too: the page there must be able to say why.
    assert (
        client.get("/api/lag", headers={"Origin": ELSEWHERE}).headers["access-control-allow-origin"]
        == ELSEWHERE
    )


# -- what the settings make ---------------------------------------------------------------------------


def test_on_a_loopback_address_nobody_is_asked_unless_a_token_is_set(tmp_path):
    for address in ("127.0.0.1", "::1", "127.0.0.9"):
        assert from_settings(Settings(home=tmp_path), address)[0].token is None
    given, file = from_settings(Settings(home=tmp_path, api_token=TOKEN), "127.0.0.1")
    assert (given.token, file) == (Access.of(TOKEN).token, None)
    assert not (tmp_path / TOKEN_FILE).exists()


@pytest.mark.parametrize(
    ("address", "changes"), [("0.0.0.0", {}), ("192.0.2.7", {}), ("::1", {"api_auth": "on"})]
)
def test_a_service_that_others_can_reach_makes_a_token_and_keeps_it(tmp_path, address, changes):
    settings = Settings(home=tmp_path / "home", **changes)
    first, file = from_settings(settings, address)
    assert file == tmp_path / "home" / TOKEN_FILE
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    written = file.read_text().strip()
    assert len(written) >= 32
    assert first.token == Access.of(written).token
    file.chmod(0o644)
    assert from_settings(settings, address)[0] == first
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_token_can_be_refused_by_who_has_a_guard_of_his_own(tmp_path):
    access, file = from_settings(Settings(home=tmp_path, api_auth="off", api_token=TOKEN), "0.0.0.0")
    assert (access, file) == (Access(), None)


def test_a_token_comes_from_the_first_line_of_a_file(tmp_path):
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n# made in November\n")
    access, file = from_settings(
        Settings(api_token_file=str(path), api_token="another-token-in-the-way"), "0.0.0.0"
    )
    assert (access.token, file) == (Access.of(TOKEN).token, None)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"api_token": "short"}, "--api-token or LINEAGE_API_TOKEN is not a token"),
        ({"api_token": "with spaces in its middle"}, "is not a token"),
        ({"api_token_file": "nowhere/token"}, "--api-token-file: nowhere/token cannot be read: No such file"),
        ({"api_hosts": "https://notes.example.org"}, "'https://notes.example.org' is not a host name"),
        ({"api_hosts": "*"}, "not a host name"),
        ({"api_cors_origins": "*"}, "there is no \\*"),
        ({"api_cors_origins": "notes.example.org"}, "'notes.example.org' is not an origin"),
        ({"api_cors_origins": "https://notes.example.org/page"}, "without a path"),
    ],
)
def test_a_setting_that_cannot_be_used_is_one_line_without_secrets(changes: dict[str, Any], says: str):
    with pytest.raises(AccessError, match=says) as raised:
        from_settings(Settings(**changes), "0.0.0.0")
    assert "\n" not in str(raised.value)
    assert "short" not in str(raised.value)
    assert "spaces" not in str(raised.value)


def test_a_damaged_or_unwritable_token_file_says_what_to_do(tmp_path: Path):
    (tmp_path / TOKEN_FILE).write_text("")
    with pytest.raises(AccessError, match="remove it"):
        from_settings(Settings(home=tmp_path), "0.0.0.0")
    (tmp_path / "file").write_text("")
    with pytest.raises(AccessError, match="LINEAGE_API_TOKEN_FILE"):
        from_settings(Settings(home=tmp_path / "file"), "0.0.0.0")
