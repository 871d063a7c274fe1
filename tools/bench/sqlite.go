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

// What one would write by hand: a row for an intent before it is performed, of
// which a cell's step has one; a row for what came of it; both with their time.
const byHandSchema = `
CREATE TABLE intents (
	key TEXT PRIMARY KEY, cell TEXT NOT NULL, n INTEGER NOT NULL, kind TEXT NOT NULL, params TEXT NOT NULL,
	created_at INTEGER NOT NULL, UNIQUE (cell, n)
);
CREATE TABLE receipts (
	key TEXT PRIMARY KEY REFERENCES intents (key), status TEXT NOT NULL, payload TEXT NOT NULL, finished_at INTEGER NOT NULL
);
`

// byHand has cells perform effects one after the other, group cells at a time,
// each group's rows in one transaction. It returns what it cost and how much of
// the disk it takes.
func (r *run) byHand(dir string, cells, effects, group int) (measured, int64) {
	r.must(os.MkdirAll(dir, 0o755))
	db, err := sql.Open("sqlite3", filepath.Join(dir, "effects.db")+"?_journal_mode=WAL&_synchronous=FULL")
	r.must(err)
	db.SetMaxOpenConns(1)
	if _, err := db.Exec(byHandSchema); err != nil {
		r.must(fmt.Errorf("sqlite: %w", err))
	}
	h := &hand{run: r, db: db}
	h.intents, err = db.Prepare("INSERT INTO intents VALUES (?, ?, ?, ?, ?, ?)")
	r.must(err)
	h.answers, err = db.Prepare("INSERT INTO receipts VALUES (?, ?, ?, ?)")
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

	db               *sql.DB
	intents, answers *sql.Stmt
	keys             []string
}

// perform writes down the n-th intents of some cells, performs them, and writes
// down what came of it.
func (h *hand) perform(first, cells, n int) {
	h.keys = h.keys[:0]
	h.insert(h.intents, cells, func(i int) []any {
		cell := fmt.Sprintf("agent/%d", first+i)
		key := sha256.Sum256(fmt.Appendf(nil, "bench %s@%d tool.call", cell, n))
		h.keys = append(h.keys, hex.EncodeToString(key[:]))
		return []any{h.keys[i], cell, n, "tool.call", strconv.Itoa(n), time.Now().UnixNano()}
	})
	h.insert(h.answers, cells, func(i int) []any {
		return []any{h.keys[i], "ok", "null", time.Now().UnixNano()}
	})
}

// insert inserts rows in a transaction.
func (h *hand) insert(into *sql.Stmt, rows int, row func(i int) []any) {
	tx, err := h.db.Begin()
	h.must(err)
	into = tx.Stmt(into)
	for i := range rows {
		_, err := into.Exec(row(i)...)
		h.must(err)
	}
	h.must(tx.Commit())
}
