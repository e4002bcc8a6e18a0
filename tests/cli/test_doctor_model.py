"""`resolver doctor --model`: one tiny call, and what is wrong in a sentence, over real sockets."""

import ipaddress
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from resolver.cli.main import run
from tests.parts.model_endpoint import Answer, ModelEndpoint, error, reply
from tests.parts.runs import RESOLVER

KEY = "sk-doctor-0123456789abcdef"
LOOPBACK = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "DOCKER_HOST": "tcp://127.0.0.1:1",
    "RESOLVER_RUNTIME": "local",
    "LLM_MODEL": "gpt-4o",
    "LLM_API_KEY": KEY,
}


@contextmanager
def serving(
    handler: type[BaseHTTPRequestHandler], tls: ssl.SSLContext | None = None
) -> Iterator[int]:
    """A server on a free port of loopback."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join(60)


class Completes(BaseHTTPRequestHandler):
    """Answers each call to a model."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        body = (
            b'{"id":"x","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,'
            b'"finish_reason":"stop","message":{"role":"assistant","content":"ready"}}]}'
        )
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Silent."""


class AsksForAPassword(BaseHTTPRequestHandler):
    """A proxy that lets nobody through."""

    def do_CONNECT(self) -> None:
        self.send_error(407, "Proxy Authentication Required")

    def log_message(self, format: str, *args: object) -> None:
        """Silent."""


def made(folder: Path) -> tuple[ssl.SSLContext, Path]:
    """A server's side of TLS with a certificate that nobody has signed, and that certificate."""
    key = ec.generate_private_key(ec.SECP256R1())
    own = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "model")])
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder(own, own, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=9))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([LOOPBACK]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    form, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    certificate, both = folder / "certificate.pem", folder / "both.pem"
    certificate.write_bytes(signed.public_bytes(pem))
    both.write_bytes(key.private_bytes(pem, form, plain) + signed.public_bytes(pem))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(both)
    return context, certificate


def doctor(*more: str, **environment: str) -> tuple[int, str]:
    """In a process of its own, as what the environment says of proxies and certificates is of a
    process."""
    done = subprocess.run(
        [RESOLVER, "doctor", "--model", *more],
        env={**ENVIRONMENT, **environment},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert KEY not in done.stdout + done.stderr
    return done.returncode, done.stdout


def last(capsys: pytest.CaptureFixture[str]) -> str:
    """Return the finding about the model, on one line."""
    shown = capsys.readouterr().out
    assert KEY not in shown
    return " ".join(shown.partition("asking the model")[2].split())


def test_the_models_of_the_settings_are_asked_when_none_is_named(
    model_endpoint: ModelEndpoint, capsys: pytest.CaptureFixture[str]
) -> None:
    model_endpoint.readiness = reply("ready")
    environment = ENVIRONMENT | {"LLM_BASE_URL": model_endpoint.url}
    assert run(["doctor", "--model"], environment) == 0
    assert "asking the model: gpt-4o answered" in capsys.readouterr().out
    assert run(["doctor", "--model", "gpt-4o-mini", "--runtime", "local"], environment) == 0
    assert "asking the model: gpt-4o-mini answered" in capsys.readouterr().out
    assert [request.body["model"] for request in model_endpoint.checks] == [
        "gpt-4o", "gpt-4o-mini",
    ]  # fmt: skip


def test_the_models_of_services_are_asked_as_well(
    model_endpoint: ModelEndpoint, capsys: pytest.CaptureFixture[str]
) -> None:
    model_endpoint.readiness = lambda body: (
        error(401, "bad key") if body["model"] == "small" else reply("ready")
    )
    environment = ENVIRONMENT | {
        "LLM_BASE_URL": model_endpoint.url,
        "RESOLVER_SERVICES": "{condenser: {model: small, api_key: k}, typo: {model: gpt-4o}}",
    }
    assert run(["doctor", "--model"], environment) == 1
    shown = capsys.readouterr().out
    assert "ok       asking the model: gpt-4o answered" in shown
    assert "missing  asking the model of condenser: the model endpoint at" in shown
    assert "RESOLVER_SERVICES (condenser)" in shown
    assert "typo is neither a service nor a built-in agent" in shown


@pytest.mark.parametrize(
    ("answer", "meaning", "step"),
    [
        (error(401, "Incorrect API key provided"), "did not accept the key", "LLM_API_KEY"),
        (error(404, "The model `gpt-4o` does not exist"), "not known there", "LLM_MODEL"),
        (error(429, "Rate limit reached"), "no quota left", "raise the quota"),
        (
            error(429, "You exceeded your current quota", code="insufficient_quota"),
            "no quota left",
            "raise the quota",
        ),
        (
            error(403, "Country, region, or territory not supported"),
            "not offered in the region",
            "the region of the model",
        ),
        (
            error(400, "User location is not supported for the API use."),
            "not offered in the region",
            "the region of the model",
        ),
    ],
)
def test_what_the_endpoint_says_is_put_in_a_sentence(
    model_endpoint: ModelEndpoint,
    capsys: pytest.CaptureFixture[str],
    answer: Answer,
    meaning: str,
    step: str,
) -> None:
    model_endpoint.readiness = answer
    assert run(["doctor", "--model"], ENVIRONMENT | {"LLM_BASE_URL": model_endpoint.url}) == 1
    said = last(capsys)
    assert meaning in said
    assert step in said.partition("->")[2]
    assert len(model_endpoint.checks) == 1, "a person waits"


def test_a_key_that_is_missing_is_named_by_its_variable(
    capsys: pytest.CaptureFixture[str],
) -> None:
    environment = {k: v for k, v in ENVIRONMENT.items() if k != "LLM_API_KEY"}
    assert run(["doctor", "--model", "anthropic/claude-sonnet-4-5"], environment) == 1
    assert "set LLM_API_KEY" in last(capsys)


def test_a_name_without_a_provider_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "--model", "my-model"], ENVIRONMENT) == 1
    assert "write it as litellm does" in last(capsys)


def test_a_certificate_that_is_not_trusted_is_reported_and_trusted_when_it_is_named(
    tmp_path: Path,
) -> None:
    context, certificate = made(tmp_path)
    with serving(Completes, context) as port:
        address = {"LLM_BASE_URL": f"https://127.0.0.1:{port}/v1"}
        code, said = doctor(**address)
        assert code == 1
        assert "certificate is not trusted here" in said
        assert "SSL_CERT_FILE" in said
        code, said = doctor(**address, SSL_CERT_FILE=str(certificate))
        assert code == 0, said


def test_a_proxy_that_wants_a_password_is_reported() -> None:
    with serving(AsksForAPassword) as port:
        code, said = doctor(
            LLM_BASE_URL="https://model.example/v1", HTTPS_PROXY=f"http://127.0.0.1:{port}"
        )
    assert code == 1
    assert "a proxy refuses" in said
    assert "HTTPS_PROXY" in said


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0", "AWS_ACCESS_KEY_ID"),
        ("vertex_ai/gemini-2.5-pro", "GOOGLE_APPLICATION_CREDENTIALS"),
    ],
)
def test_a_cloud_without_credentials_is_reported_with_its_variables(
    name: str, variable: str
) -> None:
    nowhere = {"AWS_EC2_METADATA_DISABLED": "true", "NO_GCE_CHECK": "true", "HOME": "/nowhere"}
    code, said = doctor(name, LLM_API_KEY="", AWS_REGION_NAME="eu-central-1", **nowhere)
    assert code == 1
    assert variable in said.partition("asking the model")[2], said
