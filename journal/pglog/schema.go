package pglog

import (
	"context"
	_ "embed" // for the schema
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// schemaVersion is that of schema.sql, which inserts it.
const schemaVersion = 1

//go:embed schema.sql
var schema string

// Init makes a store in an empty database. It may run again after it was interrupted, and beside
// another. A store that is made already stays as it is.
func Init(ctx context.Context, url string) error {
	s, err := connect(url, Options{})
	if err != nil {
		return err
	}
	defer s.Close()
	waiting, cancel := context.WithTimeout(ctx, s.opts.Patience)
	defer cancel()
	for pauses := newPauses(); ; {
		err := s.initOnce(ctx)
		if !inTheWay(err) || !pause(waiting, pauses) {
			return refusedBy(err)
		}
	}
}

// initOnce looks at the server, and makes the store, in one transaction, if there is none.
func (s *Store) initOnce(ctx context.Context) error {
	v, err := s.lookAtServer(ctx)
	if err == nil {
		err = v.refuseServer()
	}
	if err == nil {
		err = v.refuseSchema()
	}
	if !isRefused(err, NoStore) {
		return err
	}
	_, err = s.pool.Exec(ctx, schema, pgx.QueryExecModeSimpleProtocol) // which takes several statements
	return err
}

// inTheWay reports whether another has just made what was to be made.
func inTheWay(err error) bool {
	var said *pgconn.PgError
	return errors.As(err, &said) && slices.Contains([]string{
		"23505", "42P06", "42P07", "42710", // it is there: a row, schema, table, type
		"40P01", "40001", "XX000", // each waits for the other, or has changed what the other read
	}, said.Code)
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
