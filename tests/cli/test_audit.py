"""`echoic audit`."""

from __future__ import annotations

import json
import re


def test_accesses_by_commands_are_listed_and_verified(echoic, tmp_path):
    echoic("set", "pet", "a goat", "--user", "ana", "--audit")
    echoic("query", "pet", "--user", "bob", "--audit")
    listed = echoic("audit", "list", "--of", "ana", "--json")
    assert listed.code == 0
    done = {(e["role"], e["why"], e["did"], e["kind"]) for e in listed.json["data"]}
    assert ("command line", "echoic set", "write", "memory") in done
    head = echoic("audit", "verify").out.strip()
    echoic("get", "pet", "--user", "ana", "--audit")
    assert echoic("audit", "verify", "--head", head).code == 0
    path = tmp_path / "echoic.db.compliance" / "audit.jsonl"
    raw = path.read_bytes()
    path.write_bytes(b"".join(raw.splitlines(keepends=True)[:1]))
    assert echoic("audit", "verify").code == 0  # an end that was cut off is noticed …
    assert echoic("audit", "verify", "--head", head).code == 64  # … by who knows the hash
    path.write_bytes(raw.replace(b'"write"', b'"rites"', 1))
    changed = echoic("audit", "verify")
    assert (changed.code, "was changed" in changed.err) == (2, True)


def test_a_receipt_is_verified_and_a_changed_one_is_not(echoic, tmp_path):
    echoic("set", "pet", "a goat")
    ran = echoic("forget", "--all", "--yes", "--json")
    (tmp_path / "receipt.json").write_text(ran.out)
    good = echoic("audit", "verify", "--receipt", "receipt.json", "--json")
    assert (good.code, good.json["data"]["memories"]) == (0, 1)
    told = ran.json
    told["data"]["signed"]["statement"] = told["data"]["signed"]["statement"].replace(
        '"memories": 1', '"memories": 7'
    )
    (tmp_path / "receipt.json").write_text(json.dumps(told))
    assert echoic("audit", "verify", "--receipt", "receipt.json").code == 64


def test_a_receipt_with_other_counts_and_another_signed_statement_are_no_receipt(echoic, tmp_path):
    echoic("set", "pet", "a goat", "--audit")
    told = echoic("forget", "--all", "--yes", "--json").json["data"]
    over_http = {re.sub(r"_(.)", lambda found: found[1].upper(), name): value for name, value in told.items()}
    file = tmp_path / "receipt.json"
    for receipt, name in ((told, "bytes_searched"), (over_http, "bytesSearched")):
        file.write_text(json.dumps(receipt))
        assert echoic("audit", "verify", "--receipt", "receipt.json").code == 0
        for changed in ({"memories": 7}, {name: 7}):
            file.write_text(json.dumps(receipt | changed))
            assert "was changed" in echoic("audit", "verify", "--receipt", "receipt.json").err
    assert echoic("audit", "export", "log.jsonl").code == 0
    assert "no receipt" in echoic("audit", "verify", "--receipt", "log.jsonl.signed").err


def test_the_log_is_exported_with_its_signed_end_and_pruned(echoic, tmp_path):
    echoic("set", "pet", "a goat", "--audit")
    assert echoic("audit", "export", "log.jsonl").code == 0
    signed = json.loads((tmp_path / "log.jsonl.signed").read_text())
    assert signed["key"] == echoic("audit", "key").out.strip()
    for file in (tmp_path / "log.jsonl", tmp_path / "log.jsonl.signed"):
        assert file.stat().st_mode & 0o077 == 0, "it says who did what to whom"
    nowhere = echoic("audit", "export", "none/log.jsonl")
    assert (nowhere.code, "No such file" in nowhere.err) == (64, True)
    lines = (tmp_path / "log.jsonl").read_bytes().splitlines()
    assert json.loads(signed["statement"])["lines"] == len(lines)
    assert echoic("audit", "prune", "--before", "2100-01-01", "--json").json["count"] == len(lines) - 1
    assert echoic("audit", "list", "--json").json["data"][-1]["did"] == "prune"
    assert echoic("audit", "verify").code == 0


def test_a_backup_and_a_copy_are_logged_before_they_are_made(echoic, tmp_path):
    echoic("set", "pet", "a goat", "--user", "ana")
    assert echoic("--audit", "backup", "all.db").code == 0
    assert (
        echoic("--audit", "copy", f"sqlite:///{tmp_path}/echoic.db", f"sqlite:///{tmp_path}/to.db").code == 0
    )
    listed = echoic("audit", "list", "--json").json["data"]
    told = [(e["why"], e["did"], e["kind"], e["deployment"], e["scope"]) for e in listed]
    assert told == [
        (f"echoic {what}", "export", "everything", "default", "everyone") for what in ("backup", "copy")
    ]
