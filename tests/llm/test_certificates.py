"""Tests of loading certificates once per configured location."""

import ssl
from pathlib import Path

from resolver.llm.library import trusted_certificates


def test_clients_share_what_was_loaded() -> None:
    assert trusted_certificates({}) is trusted_certificates({"LANG": "C"})
    assert trusted_certificates({}).cert_store_stats()["x509_ca"] > 50


def test_the_environment_names_a_file_or_a_directory(tmp_path: Path) -> None:
    file = tmp_path / "one.pem"
    certificate = trusted_certificates({}).get_ca_certs(binary_form=True)[0]
    file.write_text(ssl.DER_cert_to_PEM_cert(certificate))
    found = trusted_certificates({"SSL_CERT_FILE": str(file)})
    assert found.cert_store_stats()["x509_ca"] == 1
    # Those in a directory are looked up when a server is verified.
    assert trusted_certificates({"SSL_CERT_DIR": str(tmp_path)}).cert_store_stats()["x509"] == 0
