from pathlib import Path

import yaml
from cryptography import x509
from cryptography.x509.oid import NameOID

from testbed import pki


def test_certificates_are_signed_by_the_authority_and_carry_names_and_groups() -> None:
    authority = pki.CertificateAuthority("ca")
    root = x509.load_pem_x509_certificate(authority.certificate.encode())
    server = x509.load_pem_x509_certificate(
        authority.issue_server("s", ["127.0.0.1", "localhost"]).certificate.encode()
    )
    client = x509.load_pem_x509_certificate(
        authority.issue_client("alice", ["devs", "ops"]).certificate.encode()
    )
    for certificate in (server, client):
        certificate.verify_directly_issued_by(root)
    names = server.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(name.value) for name in names] == ["127.0.0.1", "localhost"]
    groups = client.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    assert [group.value for group in groups] == ["devs", "ops"]


def test_the_token_file_quotes_groups() -> None:
    text = pki.token_file([("t1", "alice", ("a", "b")), ("t2", "bob", ())])
    assert text == 't1,alice,alice,"a,b"\nt2,bob,bob\n'


def test_a_kubeconfig_leads_to_the_server_as_the_user() -> None:
    text = pki.kubeconfig(
        server="https://h:1", ca_file=Path("/ca"), user="u", credentials={"token": "t"}
    )
    config = yaml.safe_load(text)
    assert config["current-context"] == config["contexts"][0]["name"]
    assert config["contexts"][0]["context"]["user"] == config["users"][0]["name"] == "u"
    assert config["clusters"][0]["cluster"]["server"] == "https://h:1"


def test_private_files_are_readable_by_their_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "key"
    pki.write_private(path, "secret")
    assert path.stat().st_mode & 0o777 == 0o600
