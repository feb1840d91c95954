"""A large store made of a small one: every user again under other names, by the database itself.

Writing a million memories through the store takes an hour of a busy machine and measures only that. What is
read and written afterwards cannot tell: rows, sizes and indexes are those of a store that was written to.
"""

from __future__ import annotations

from pathlib import Path

import apsw
import asyncpg

from echoic.stores.postgres.schema import OF_A_SCOPE
from echoic.stores.sqlite.schema import connect

_SQLITE = (
    """insert into scopes select id + :ids, deployment, 'user ' || (substr(user, 6) + :users), version,
         next_row, next_other from scopes where id <= :last""",
    """insert into records select id + (:ids << 32), scope + :ids, kind, name, key, version, data
         from records where scope <= :last""",
    *(
        f"""insert into {table} select id + (:ids << 32), {columns} from {table} where id >> 32 <= :last"""
        for table, columns in (("segments", "version, words"), ("vectors", "data"), ("tokens", "data"))
    ),
)
_COLUMNS = """select string_agg(quote_ident(column_name), ', ' order by ordinal_position)
  from information_schema.columns where table_schema = $1 and table_name = $2 and column_name <> 'scope'"""


def times_in_sqlite(path: Path, users: int, times: int) -> None:
    """Let the `users` users of the file be `times` as many. Nobody has it open.

    Args:
        path: of the file; its users are called "user 0", "user 1" and so on.
        users: how many it holds.
        times: how many there shall be of each.
    """
    connection = connect(str(path), None)
    try:
        last = connection.execute("select max(id) from scopes").get
        connection.execute("pragma synchronous = off")  # a benchmark's file; it is synced below
        for copy in range(1, times):
            with connection:
                for statement in _SQLITE:
                    _ = list(
                        connection.execute(
                            statement, {"ids": copy * last, "users": copy * users, "last": last}
                        )
                    )
            connection.execute("pragma wal_checkpoint(truncate)")
        connection.execute("pragma synchronous = full")
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    finally:
        connection.close()


async def times_in_postgres(dsn: str, schema: str, users: int, times: int) -> None:
    """The same in a schema of a database.

    Args:
        dsn: as the driver takes it.
        schema: where the tables are.
        users: how many it holds.
        times: how many there shall be of each.
    """
    connection = await asyncpg.connect(dsn)
    try:
        last = await connection.fetchval(f"select max(id) from {schema}.scopes")
        columns = {
            table: await connection.fetchval(_COLUMNS, schema, table)
            for table in OF_A_SCOPE
            if table != "pending"
        }
        for copy in range(1, times):
            async with connection.transaction():
                await connection.execute(
                    f"insert into {schema}.scopes overriding system value select id + $1, deployment, "
                    f"'user ' || (substr(usr, 6)::int + $2::int), version, next_row, next_other "
                    f"from {schema}.scopes where id <= $3",
                    copy * last,
                    copy * users,
                    last,
                )
                for table, others in columns.items():
                    await connection.execute(
                        f"insert into {schema}.{table} (scope, {others}) "
                        f"select scope + $1, {others} from {schema}.{table} where scope <= $2",
                        copy * last,
                        last,
                    )
        sequence = f"pg_get_serial_sequence('{schema}.scopes', 'id')"
        await connection.execute(f"select setval({sequence}, {last * times})")
        for table in ("scopes", *OF_A_SCOPE):
            await connection.execute(f"vacuum analyze {schema}.{table}")
    finally:
        await connection.close()


__all__ = ["times_in_postgres", "times_in_sqlite"]
