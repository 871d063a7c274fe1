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
func byHand(dir string, cells, effects, group int) (measured, int64, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return measured{}, 0, err
	}
	db, err := sql.Open("sqlite3", filepath.Join(dir, "effects.db")+"?_journal_mode=WAL&_synchronous=FULL")
	if err != nil {
		return measured{}, 0, err
	}
	db.SetMaxOpenConns(1)
	if _, err := db.Exec(byHandSchema); err != nil {
		return measured{}, 0, errors.Join(fmt.Errorf("sqlite: %w", err), db.Close())
	}
	h, err := newHand(db)
	if err != nil {
		return measured{}, 0, errors.Join(err, db.Close())
	}
	m, err := measure(func() error {
		for n := range effects {
			for first := 0; first < cells; first += group {
				if err := h.perform(first, min(group, cells-first), n); err != nil {
					return err
				}
			}
		}
		return nil
	})
	bytes, sized := sizeOf(dir)
	return m, bytes, errors.Join(err, sized, db.Close())
}

type hand struct {
	db               *sql.DB
	intents, answers *sql.Stmt
	keys             []string
}

func newHand(db *sql.DB) (*hand, error) {
	h := &hand{db: db}
	var err, second error
	h.intents, err = db.Prepare("INSERT INTO intents VALUES (?, ?, ?, ?, ?, ?)")
	h.answers, second = db.Prepare("INSERT INTO receipts VALUES (?, ?, ?, ?)")
	return h, errors.Join(err, second)
}

// perform writes down the n-th intents of some cells, performs them, and writes
// down what came of it.
func (h *hand) perform(first, cells, n int) error {
	h.keys = h.keys[:0]
	err := h.transaction(h.intents, func(insert *sql.Stmt) error {
		for i := range cells {
			cell := fmt.Sprintf("agent/%d", first+i)
			key := sha256.Sum256(fmt.Appendf(nil, "bench %s@%d tool.call", cell, n))
			h.keys = append(h.keys, hex.EncodeToString(key[:]))
			if _, err := insert.Exec(h.keys[i], cell, n, "tool.call", strconv.Itoa(n), time.Now().UnixNano()); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return h.transaction(h.answers, func(insert *sql.Stmt) error {
		for _, key := range h.keys {
			if _, err := insert.Exec(key, "ok", "null", time.Now().UnixNano()); err != nil {
				return err
			}
		}
		return nil
	})
}

func (h *hand) transaction(insert *sql.Stmt, fill func(*sql.Stmt) error) error {
	tx, err := h.db.Begin()
	if err != nil {
		return err
	}
	if err := fill(tx.Stmt(insert)); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}
