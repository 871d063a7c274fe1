// Package testlog has the tests of worlds run once more on PostgreSQL: where Env is postgres, the
// worlds that they make lie in a store on a server that their process starts. It is a part of
// worldctl, and not an API.
package testlog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/inlog"
	"github.com/worldkernel/worldkernel/journal/pglog"
	"github.com/worldkernel/worldkernel/journal/pglog/pgtest"
)

// Env names the environment variable that says where the worlds of tests lie: postgres, or the
// URL of a store, which is what processes that a test starts find there. Empty: in directories.
const Env = "WORLDKERNEL_TEST_LOG"

// idFile, in the hidden directory of a world, has its id in the store. What is made into a
// directory, such as a fork, does not have it.
const idFile = "test-log"

var (
	key    = []byte("a key of thirty-two bytes for it")     //nolint:gochecknoglobals // of all worlds of tests
	worlds atomic.Int64                                     //nolint:gochecknoglobals // numbers those of this process
	server *pgtest.Server                                   //nolint:gochecknoglobals // of the process that the tests began with: it ends with it
	store  = sync.OnceValues(func() (*pglog.Store, error) { //nolint:gochecknoglobals // a process has one
		return pglog.Open(context.Background(), os.Getenv(Env), pglog.Options{})
	})
)

// On reports whether the worlds of tests lie in PostgreSQL.
func On() bool { return os.Getenv(Env) != "" }

// Skip skips a test of what there is in directories only.
func Skip(t testing.TB, why string) {
	t.Helper()
	if On() {
		t.Skip("on PostgreSQL: " + why)
	}
}

// Begin has the worlds that are made from now on lie where Env says. It is called in TestMain, and
// skips all tests, saying so, where PostgreSQL is not installed.
func Begin() {
	if !On() {
		return
	}
	inlog.Of = ofOwners
	if err := start(); err != nil {
		code := 1
		if errors.Is(err, pgtest.ErrNone) {
			code = 0
		}
		fmt.Fprintln(os.Stderr, "no test is run on PostgreSQL:", err)
		os.Exit(code) //nolint:forbidigo // TestMain has no other way to skip all
	}
}

// start starts the server, and makes the store, in the process that the tests began with: durable
// as PostgreSQL comes, on a disk in memory where there is one.
func start() (err error) {
	if os.Getenv(Env) != "postgres" {
		return nil
	}
	if server, err = pgtest.Run(pgtest.InMemory()); err != nil {
		return err
	}
	url, err := server.Database()
	if err == nil {
		err = pglog.Init(context.Background(), url)
	}
	if err == nil {
		err = os.Setenv(Env, url)
	}
	return err
}

// ofOwners is inlog.Of: whoever opens a world is one more process that means to have it.
func ofOwners(hidden string, making bool) func([]byte) (journal.Log, error) {
	file := filepath.Join(hidden, idFile)
	if _, err := os.Stat(file); os.IsNotExist(err) && !making {
		return nil
	}
	return func([]byte) (journal.Log, error) {
		s, err := store()
		if err != nil {
			return nil, err
		}
		if making {
			err = create(s, file)
		}
		id, failed := os.ReadFile(file)
		if err = errors.Join(err, failed); err != nil {
			return nil, err
		}
		return s.World(string(id), pglog.Claim{Key: key, Take: true}), nil
	}
}

func create(s *pglog.Store, file string) error {
	id := fmt.Sprintf("w%d-%d", os.Getpid(), worlds.Add(1))
	return errors.Join(s.Create(context.Background(), id, key), os.WriteFile(file, []byte(id), 0o600))
}
