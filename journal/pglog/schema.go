package pglog

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
)

// schemaVersion is that of the last file in migrations.
const schemaVersion = 7

// migrationTable is where goose keeps what it has run.
const migrationTable = "worldkernel.migration"

//go:embed migrations/*.sql
var migrations embed.FS

// Init makes a store in a database that has none. It may run again after it was interrupted, and
// beside another.
func Init(ctx context.Context, url string) error {
	return withServer(ctx, url, func(s *Store, v serverSettings) error {
		switch {
		case v.schema && v.store != nil && !*v.store:
			return refuse(OtherSchema, "it has no table meta")
		case v.schema:
			return v.refuseSchema()
		}
		return s.migrate(ctx)
	})
}

// Migrate brings a store of an earlier version of this program to this one. It may run again
// after it was interrupted.
func Migrate(ctx context.Context, url string) error {
	return withServer(ctx, url, func(s *Store, v serverSettings) error {
		if err := v.refuseSchema(); err == nil || !isRefused(err, OldSchema) {
			return err
		}
		return s.migrate(ctx)
	})
}

// Status is how a store stands, and the server that it is on.
type Status struct {
	Server            string  // the version of PostgreSQL
	Fsync             bool    // as all below it, a setting of the server for this user and database
	FullPageWrites    bool    // or a page may be torn by a crash
	SynchronousCommit string  // what an answer says about what is durable
	Encoding          string  // of the database
	Schema            int     // of the store; 0: there is none
	Has               int     // the schema that this program has
	Store             string  // its id, which no other store has
	Refused           []error // why it is not used as it is: *RefusedError
}

// ReadStatus looks at a store, also at one that Open refuses.
func ReadStatus(ctx context.Context, url string) (Status, error) {
	s, err := connect(url, Options{})
	if err != nil {
		return Status{}, err
	}
	defer s.Close()
	v, err := s.lookAtServer(ctx)
	if err != nil {
		return Status{}, err
	}
	st := Status{
		Server: v.release(), Fsync: v.fsync, FullPageWrites: v.fullPages, SynchronousCommit: v.commit, Encoding: v.encoding,
		Schema: v.storeSchema, Has: schemaVersion, Store: v.storeID, Refused: v.serverFaults(),
	}
	if err := v.refuseSchema(); err != nil {
		st.Refused = append(st.Refused, err)
	}
	return st, nil
}

func isRefused(err error, as State) bool {
	var refused *RefusedError
	return errors.As(err, &refused) && refused.State == as
}

// withServer calls f with a server on which a store may be.
func withServer(ctx context.Context, url string, f func(*Store, serverSettings) error) error {
	s, err := connect(url, Options{})
	if err != nil {
		return err
	}
	defer s.Close()
	v, err := s.lookAtServer(ctx)
	if err == nil {
		err = v.refuseServer()
	}
	if err != nil {
		return err
	}
	return f(s, v)
}

// migrate runs what of migrations has not run. Of two processes that do so at once one may be in
// the way of the other, which then looks again.
func (s *Store) migrate(ctx context.Context) error {
	waiting, cancel := context.WithTimeout(ctx, s.opts.Patience)
	defer cancel()
	for pauses := newPauses(); ; {
		err := s.migrateOnce(ctx)
		if !inTheWay(err) || !pause(waiting, pauses) {
			return refusedBy(err)
		}
	}
}

// inTheWay reports whether another has just made what was to be made.
func inTheWay(err error) bool {
	var said *pgconn.PgError
	return errors.As(err, &said) && slices.Contains([]string{
		"23505", "42P06", "42P07", "42710", "42701", // it is there: a row, schema, table, type, column
		"40P01", "40001", "XX000", // each waits for the other, or has changed what the other read
	}, said.Code)
}

// migrateOnce runs each migration in a transaction of its own with its entry.
func (s *Store) migrateOnce(ctx context.Context) error {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return fmt.Errorf("pglog: %w", err)
	}
	if err := s.rows(ctx, sqlSchema, nil, nil); err != nil {
		return err
	}
	db := stdlib.OpenDBFromPool(s.pool)
	defer db.Close() //nolint:errcheck // it has none of its own: the pool stays
	p, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithTableName(migrationTable))
	if err != nil {
		return fmt.Errorf("pglog: %w", err)
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("pglog: migrate: %w", err)
	}
	return s.rows(ctx, sqlVersion, []any{schemaVersion}, nil)
}
