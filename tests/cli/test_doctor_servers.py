"""`echoic doctor` on a server: version, indexes, lag and permissions.

MongoDB is the wire stand-in, PostgreSQL is real.
"""

from __future__ import annotations

from datetime import timedelta

from echoic_loopback.mongodb import MongoServer
from stores.postgres_server import new_schema, shared

SERVER = ["version", "indexes", "lag", "search lag", "permissions"]
ALLOWED = ["find", "insert", "update", "remove", "createIndex", "createSearchIndexes", "changeStream"]


def steps(ran):
    return {step["name"]: step for step in ran.json["data"]}


def test_version_indexes_lag_and_permissions_are_told_and_all_is_well(echoic):
    with MongoServer(allowed=ALLOWED) as server:
        ran = echoic("doctor", "--store", server.url("echoic"), "--json")
        again = echoic("doctor", "--store", server.url("echoic"))
        assert server.documents("echoic.memories") == [], "something of the attempt stayed"
    assert ran.code == 0, ran.out
    found = steps(ran)
    assert list(found)[2:7] == SERVER
    assert all(step["well"] for step in found.values())
    assert found["version"]["detail"].startswith("MongoDB 8.2.0, a replica set")
    assert "echoic_vector READY, echoic_text READY" in found["indexes"]["detail"]
    assert "0.0 s behind" in found["lag"]["detail"]
    assert "echoic_vector 0." in found["search lag"]["detail"]
    assert found["permissions"]["detail"] == "the user may do all that is needed"
    assert {line[0] for line in again.out.splitlines()} == {"✔"}


def test_what_is_wrong_fails_the_doctor_and_the_way_out_is_named(echoic):
    few = [action for action in ALLOWED if action != "createSearchIndexes"]
    with MongoServer(allowed=few, behind=timedelta(seconds=30)) as server:
        ran = echoic("doctor", "--store", server.url("echoic"), "--json")
    assert ran.code == 2
    found = steps(ran)
    assert [name for name in SERVER if name in found and not found[name]["well"]] == [
        "indexes",
        "lag",
        "permissions",
    ]
    assert "createSearchIndexes" in found["permissions"]["detail"]
    assert "readWrite" in found["permissions"]["advice"]
    assert "30.0 s behind" in found["lag"]["detail"]
    assert found["query"]["well"], "what does not need it works all the same"


def test_a_server_that_cannot_be_used_is_told_the_way_out(echoic):
    with MongoServer(replica_set=None) as server:
        ran = echoic("doctor", "--store", server.url("echoic"), "--json")
    assert ran.code == 2
    assert "--replSet rs0" in steps(ran)["store"]["detail"]
    assert not set(SERVER) & set(steps(ran))


def test_a_store_without_a_server_has_no_such_steps(echoic):
    assert not set(SERVER) & set(steps(echoic("doctor", "--json")))


def test_postgres_tells_what_is_well_and_what_is_not(echoic):
    role, schema = new_schema(), new_schema()
    url = shared().url(schema)
    assert echoic("set", "pet", "a goat", "--store", url).code == 0
    shared().sql(
        f"create role {role} login; grant usage on schema {schema} to {role}; "
        f"grant select, insert, update, delete on all tables in schema {schema} to {role}; "
        f"drop index {schema}.records_by_key"
    )
    found = steps(echoic("doctor", "--store", shared().url(schema, user=role), "--json"))
    names = ["version", "durability", "indexes", "lag", "told", "permissions"]
    assert list(found)[2:8] == names
    # the tests' server does not sync its commits
    assert [name for name in found if not found[name]["well"]] == ["durability", "indexes"]
    assert "records_by_key" in found["indexes"]["detail"]
    assert found["gone"]["well"]
    assert echoic("get", "pet", "--store", url).out == "a goat\n"
