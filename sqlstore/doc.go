// Package sqlstore keeps runs and sessions in an SQL database: ledgers and
// conversations side by side, so that a batch of a session and the fact that
// records it commit in one transaction.
//
// OpenSQLite opens one file for any number of goroutines and processes of one host.
// A *Store is the journal.Driver, and Store.Session gives the sessions in it.
//
// # Durability
//
// An SQLite store runs in WAL mode with synchronous=FULL: a successful write
// survives a crash of the process and a loss of power, as far as the disk keeps
// what it acknowledged (https://www.sqlite.org/pragma.html#pragma_synchronous).
// Every connection reads the settings back and is refused if they are not in force.
// The driver syncs with fsync; a program may choose the faster fdatasync for all its
// databases (https://pkg.go.dev/modernc.org/sqlite#Fdatasync).
//
// There is one writing connection. Writes that are waiting when a transaction
// begins share it and its one sync; each runs in a savepoint, so that a refused one
// leaves the others alone. The goroutine that finds the writer free does the work
// itself. Every write transaction begins with BEGIN IMMEDIATE and decides on what
// it reads there, so claims and fences hold between processes too.
//
// # Layout
//
//	pawl_meta       one row: the application, the schema's version, the store's id
//	pawl_runs       a run: its head, its claim, what a listing needs
//	pawl_facts      a fact: run, number and the columns of journal.Record
//	pawl_inbox      an entry of an inbox; it stays when it was consumed
//	pawl_batches    the ids of the batches a session has taken
//	agent_sessions  a session, as the OpenAI Agents SDK for Python keeps it
//	agent_messages  an item of a session, likewise
//
// A run has a number of its own in the store, given in the order of creation:
// facts and entries refer to it instead of repeating the id, and listings are in
// its order. The key of a fact is made of both numbers, so that a run's facts lie
// together and in order and need no index; a table without rowid would move every
// payload above a quarter of a page to pages of its own. Payloads and items are the text they were given as, to the byte; salts and
// hashes are blobs. Times of this package's tables are Unix milliseconds of the
// clock of the process, which one host shares; created_at and updated_at of the
// Python tables are SQLite's CURRENT_TIMESTAMP. Items of a session are in the order
// of their ids, never of their times.
//
// The two tables of Python's SQLiteSession are exactly its own
// (https://github.com/openai/openai-agents-python/blob/main/src/agents/memory/sqlite_session.py):
// a file that has only those becomes a store by adding our tables beside them, and
// Python goes on reading and writing its sessions there, with SQLite 3.37 or newer,
// which knows STRICT tables.
package sqlstore
