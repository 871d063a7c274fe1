package main

import (
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	_ "github.com/mattn/go-sqlite3" // the driver "sqlite3"
)

// tables are a way to keep effects in SQLite: what is inserted before an effect is
// performed, of which a cell's step has one, and what after.
type tables struct {
	schema  string
	intents string
	intent  func(e handEffect) []any
	answers string
	answer  func(e handEffect) []any
}

type handEffect struct {
	key, cell string
	n         int
}

// indexed is what one would write by hand: a row for an intent, and a row for what
// came of it, both with their time.
func indexed() tables {
	return tables{
		schema: `
CREATE TABLE intents (
	key TEXT PRIMARY KEY, cell TEXT NOT NULL, n INTEGER NOT NULL, kind TEXT NOT NULL, params TEXT NOT NULL,
	created_at INTEGER NOT NULL, UNIQUE (cell, n)
);
CREATE TABLE receipts (
	key TEXT PRIMARY KEY REFERENCES intents (key), status TEXT NOT NULL, payload TEXT NOT NULL, finished_at INTEGER NOT NULL
);
`,
		intents: "INSERT INTO intents VALUES (?, ?, ?, ?, ?, ?)",
		intent: func(e handEffect) []any {
			return []any{e.key, e.cell, e.n, "tool.call", strconv.Itoa(e.n), time.Now().UnixNano()}
		},
		answers: "INSERT INTO receipts VALUES (?, ?, ?, ?)",
		answer:  func(e handEffect) []any { return []any{e.key, "ok", "null", time.Now().UnixNano()} },
	}
}

// lean is the least that one would write by hand: the same rows at the end of one
// table, and no index, so that nothing tells a key that was there before.
func lean() tables {
	t := indexed()
	t.schema = `
CREATE TABLE log (
	key TEXT NOT NULL, cell TEXT, n INTEGER, what TEXT NOT NULL, body TEXT NOT NULL, at INTEGER NOT NULL
);
`
	t.intents = "INSERT INTO log VALUES (?, ?, ?, ?, ?, ?)"
	t.answers = "INSERT INTO log (key, what, body, at) VALUES (?, ?, ?, ?)"
	return t
}

// byHand has cells perform effects one after the other, group cells at a time,
// each group's rows in one transaction. It returns what it cost and how much of
// the disk it takes.
func (r *run) byHand(dir string, t tables, cells, effects, group int) (measured, int64) {
	r.must(os.MkdirAll(dir, 0o755))
	db, err := sql.Open("sqlite3", filepath.Join(dir, "effects.db")+"?_journal_mode=WAL&_synchronous=FULL")
	r.must(err)
	db.SetMaxOpenConns(1)
	if _, err := db.Exec(t.schema); err != nil {
		r.must(fmt.Errorf("sqlite: %w", err))
	}
	h := &hand{run: r, db: db, tables: t}
	h.before, err = db.Prepare(t.intents)
	r.must(err)
	h.after, err = db.Prepare(t.answers)
	r.must(err)
	m := measure(func() {
		for n := range effects {
			for first := 0; first < cells; first += group {
				h.perform(first, min(group, cells-first), n)
			}
		}
	})
	bytes, err := sizeOf(dir)
	r.must(errors.Join(err, db.Close()))
	return m, bytes
}

type hand struct {
	*run
	tables

	db            *sql.DB
	before, after *sql.Stmt
	effects       []handEffect
}

// perform writes down the n-th intents of some cells, performs them, and writes
// down what came of it.
func (h *hand) perform(first, cells, n int) {
	h.effects = h.effects[:0]
	for i := range cells {
		cell := fmt.Sprintf("agent/%d", first+i)
		key := sha256.Sum256(fmt.Appendf(nil, "bench %s@%d tool.call", cell, n))
		h.effects = append(h.effects, handEffect{key: hex.EncodeToString(key[:]), cell: cell, n: n})
	}
	h.insert(h.before, h.intent)
	h.insert(h.after, h.answer)
}

// insert inserts a row of each effect, in one transaction.
func (h *hand) insert(into *sql.Stmt, row func(handEffect) []any) {
	tx, err := h.db.Begin()
	h.must(err)
	into = tx.Stmt(into)
	for _, e := range h.effects {
		_, err := into.Exec(row(e)...)
		h.must(err)
	}
	h.must(tx.Commit())
}
