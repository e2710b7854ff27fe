"""Who may ask what: token, names, origins, sizes, TLS."""

import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

from consumer.cli.main import main
from consumer.serve.health import answers
from tests.certificates import Authority
from tests.serving.conftest import Ask
from tests.serving.lab import HEADERS, TOKEN, Serving

OPEN = ("/", "/healthz", "/health", "/api/v2/health")
ON_LOOPBACK = ("/metrics", "/openapi.json")
CLOSED = ("/api/v2/changefeeds", "/api/v2/changefeeds/x", "/api/v2/changefeeds/x/history", "/docs", "/anything")


@pytest.mark.parametrize("loopback", [True, False])
def test_what_needs_the_token(asking: Ask, loopback: bool) -> None:
    client = asking(loopback=loopback)
    answers = {path: client.get(path).status_code for path in (*OPEN, *ON_LOOPBACK, *CLOSED)}
    expected = {
        **dict.fromkeys(OPEN, 200),
        **dict.fromkeys(ON_LOOPBACK, 200 if loopback else 401),
        **dict.fromkeys(CLOSED, 401),
    }
    assert answers == expected
    assert client.post("/", headers={"Host": "127.0.0.1"}).status_code == 401
    with_it = asking(loopback=loopback, Authorization=f"Bearer {TOKEN}")
    assert with_it.get("/api/v2/changefeeds").json() == {"total": 0, "items": []}
    assert with_it.get("/metrics").status_code == 200


@pytest.mark.parametrize(
    "given",
    ["", "Bearer", "Bearer ", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", f"Basic {TOKEN}", TOKEN, "Bearer \xff"],
)
def test_a_wrong_token(asking: Ask, given: str) -> None:
    answer = asking().get("/api/v2/changefeeds", headers={"Authorization": given.encode("latin-1")})
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    told = answer.json()
    assert told["error_code"] == "Reconciler:ErrUnauthorized"
    assert {"fact", "where", "hint", "error_msg"} <= told.keys()
    assert TOKEN not in answer.text


def test_without_a_token_nobody_has_it(asking: Ask) -> None:
    for given in ({}, {"Authorization": "Bearer "}, {"Authorization": "Bearer x"}):
        answer = asking(token="").get("/api/v2/changefeeds", headers=given)
        assert answer.status_code == 401
    assert "RECONCILER_TOKEN" in answer.json()["hint"]


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("127.0.0.1:8300", True),
        ("localhost", True),
        ("[::1]:8300", True),
        ("10.1.2.3", True),
        ("ops.example:8300", True),
        ("evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("localhost.evil.example", False),
        ("", False),
        ("[", False),
        ("ops.example@evil.example", False),
        ("evil@127.0.0.1", False),
        ("evil:x@127.0.0.1:8300", False),
        ("evil@localhost", False),
        ("127.0.0.1/evil", False),
        ("127.0.0.1?evil", False),
        ("127.0.0.1#evil", False),
        ("127.0.0.1\\evil", False),
        ("127.0.0.1:x", False),
        ("127.0.0.1:", False),
        ("127.0.0.1 ", False),
        ("127.0.0.1\t", False),
        ("127.0.0.1,evil.example", False),
        ("[::1", False),
        ("::1", False),
        ("[fe80::1%25eth0]", False),
        ("[v1.x]", False),
    ],
)
def test_a_name_that_is_not_ours(asking: Ask, host: str, allowed: bool) -> None:
    """DNS rebinding: a page's own name points here, and its script asks with that name in Host."""
    client = asking(names=("ops.example",))
    for path in ("/healthz", "/metrics"):
        answer = client.get(path, headers={"Host": host})
        assert (answer.status_code == 200) is allowed, answer.text
        assert allowed or answer.json()["error_code"] == "Reconciler:ErrForbidden"


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://127.0.0.1:8300", 200),
        ("https://127.0.0.1:8300", 200),
        ("http://127.0.0.1:8301", 403),
        ("http://evil.example", 403),
        ("null", 403),
        ("http://evil@127.0.0.1:8300", 403),
        ("http://127.0.0.1:8300/", 403),
        ("http://127.0.0.1:8300?x", 403),
        ("//127.0.0.1:8300", 403),
        ("ftp://127.0.0.1:8300", 403),
        ("http://127.0.0.1:8300 http://evil.example", 403),
        ("", 403),
    ],
)
def test_an_origin_that_is_not_ours(asking: Ask, origin: str, status: int) -> None:
    client = asking(Authorization=f"Bearer {TOKEN}")
    assert client.get("/api/v2/changefeeds", headers={"Origin": origin}).status_code == status


def test_headers_that_are_sent_twice(asking: Ask) -> None:
    client = asking(Authorization=f"Bearer {TOKEN}")
    for name, ours, other in (("Host", "127.0.0.1", "evil.example"), ("Origin", "http://127.0.0.1:8300", "http://x")):
        for pair in ([ours, other], [other, ours]):
            answer = client.get("/api/v2/changefeeds", headers=[(name, one) for one in pair])
            assert answer.status_code == 403, answer.text


def test_bodies_are_limited(asking: Ask) -> None:
    client = asking(Authorization=f"Bearer {TOKEN}")
    large = b"x" * ((1 << 20) + 1)
    told = client.post("/api/v2/changefeeds", content=large, headers={"Content-Type": "application/toml"})

    async def pieces() -> AsyncIterator[bytes]:  # no length is told ahead
        for i in range(0, len(large), 65536):
            yield large[i : i + 65536]

    streamed = client.post("/api/v2/changefeeds", content=pieces(), headers={"Content-Type": "application/toml"})
    for answer in (told, streamed):
        assert answer.status_code == 413, answer.text
        assert answer.json()["error_code"] == "Reconciler:ErrTooLarge"


def test_headers_that_browsers_heed(asking: Ask) -> None:
    headers = asking().get("/healthz").headers
    assert (headers["x-content-type-options"], headers["x-frame-options"]) == ("nosniff", "DENY")
    assert "no-store" in headers["cache-control"]


@pytest.mark.parametrize(
    ("options", "token", "said"),
    [
        (["--host", "::"], "", "there is no token"),
        ([], "short", "shorter than"),
        (["--tls-cert", "x.pem"], TOKEN, "a certificate and its key"),
        (["--tls-cert", "x.pem", "--tls-key", "y.pem"], TOKEN, "the certificate can't be used"),
        (["--host", "192.0.2.1"], TOKEN, "can't listen"),
        (["--host", "no-such-host.invalid"], TOKEN, "can't listen"),
    ],
)
def test_wrong_usage(folder: Path, options: list[str], token: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECONCILER_TOKEN", token)
    done = CliRunner().invoke(main, ["serve", str(folder), *options])
    assert done.exit_code == 2
    assert said in done.stderr
    assert "hint" in done.stderr


def test_the_token_may_be_in_a_file(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = tmp_path / "token"
    secret.write_text(f"{TOKEN}\n")
    with Serving(folder, env={"RECONCILER_TOKEN": f"file:{secret}"}) as serving:
        assert httpx.get(f"{serving.url}api/v2/changefeeds").status_code == 401
        assert httpx.get(f"{serving.url}api/v2/changefeeds", headers=HEADERS).status_code == 200
        assert serving.ended()[0] == 0
    for path, said in ((tmp_path / "none", "can't read the secret file"), (tmp_path / "short", "shorter than")):
        (tmp_path / "short").write_text("short\n")
        monkeypatch.setenv("RECONCILER_TOKEN", f"file:{path}")
        done = CliRunner().invoke(main, ["serve", str(folder), "--host", "::"])
        assert done.exit_code == 2
        assert said in done.stderr


def test_without_a_token_the_log_says_so(folder: Path) -> None:
    with Serving(folder, env={"RECONCILER_TOKEN": ""}) as serving:
        said = [line for line in serving.lines if line["level"] == "warning"]
        assert [line["event"] for line in said] == ["there is no token: the API is closed, and the page can't be used"]
        assert "RECONCILER_TOKEN" in said[0]["hint"]
        assert httpx.get(f"{serving.url}api/v2/changefeeds").status_code == 401


def test_no_such_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECONCILER_TOKEN", TOKEN)
    done = CliRunner().invoke(main, ["serve", str(tmp_path / "none")])
    assert done.exit_code == 2
    assert "no such directory" in done.stderr


def test_the_health_check_finds_a_process_without_tls(folder: Path) -> None:
    with Serving(folder) as serving:
        assert answers(httpx.URL(serving.url).netloc.decode())


@pytest.mark.by_turns
def test_tls_and_a_second_process(folder: Path, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    ours = authority.issue("server", ["127.0.0.1"])
    with Serving(folder, "--tls-cert", str(ours.certificate), "--tls-key", str(ours.key)) as serving:
        assert serving.url.startswith("https://")
        second = CliRunner(env={"RECONCILER_TOKEN": TOKEN}).invoke(main, ["serve", str(folder), "--port", "0"])
        assert (second.exit_code, "another process serves this directory" in second.stderr) == (2, True)
        trusting = ssl.create_default_context(cafile=str(authority.file))
        answer = httpx.get(f"{serving.url}api/v2/changefeeds", headers=HEADERS, verify=trusting)
        assert answer.json() == {"total": 0, "items": []}
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{serving.url}healthz")
        with pytest.raises(httpx.HTTPError):
            httpx.get(serving.url.replace("https", "http") + "healthz")
        place = httpx.URL(serving.url).netloc.decode()
        assert answers(place)
        code, _ = serving.ended()
    assert code == 0
    assert not answers(place)
    assert TOKEN not in "".join(serving.raw)
