// Package pgstore keeps runs and sessions in a PostgreSQL database, version 13 or newer: the
// same ledgers and conversations as package sqlstore keeps in a file, for any number of
// processes on any number of hosts.
//
// A *Store is the journal.Driver, and Store.Session gives the sessions in it. A batch of a
// session and the fact that records it commit in one transaction; tools made by NewTxTool, or
// by sqlstore.NewTxTool, work in the store's own transaction.
//
// # Durability
//
// A successful write survives a crash of the server as far as its synchronous_commit says
// (https://www.postgresql.org/docs/current/runtime-config-wal.html). Every connection reads
// the setting back and is refused if it is off, unless Options says otherwise. So is one whose
// default_transaction_isolation is above read committed: of two runs that begin on one session at
// once each has to see the other.
//
// Each append is one statement, which compares epoch and position under the lock of the run's
// row before it writes anything. Appends that wait for each other share one round trip and one
// commit; a refused one leaves the others alone. Code that is lent a transaction has a
// connection of its own, and holds up nobody but its own run.
//
// Ids of runs, sessions and conversations have at most 1024 bytes and no NUL: others are refused,
// as a *pawl.ConfigError, before anything is written.
//
// # Connections
//
// The store works through PgBouncer in transaction mode: it keeps nothing on a connection from
// one transaction to the next, but for statements that are prepared. PgBouncer before 1.21
// does not know those: add default_query_exec_mode=exec to the URL. LISTEN does not work
// there: a worker sees decisions when it looks the next time, unless Options.ListenURL is the
// URL of the server itself, which takes one connection a worker. A search_path belongs to the role
// or the database then (ALTER ROLE ... SET), not to the URL, whose parameters PgBouncer refuses.
//
// # Rights
//
// Who opens the store first, or a newer version of it, needs CREATE on the schema. Everybody else
// needs no more than SELECT, INSERT, UPDATE and DELETE on the store's tables and USAGE on the
// sequence pawl_order; what is missing is ErrAccess, which names it.
//
// # Layout
//
// The tables have the columns of package sqlstore, in the first schema of the search_path.
// agent_sessions and agent_messages are named and laid out as those of SQLAlchemySession of the
// OpenAI Agents SDK for Python (https://openai.github.io/openai-agents-python/sessions/sqlalchemy_session/);
// nobody has tried both on one database yet. Times are Unix milliseconds of the
// server's clock. Items of a session are in the order of their ids.
package pgstore
