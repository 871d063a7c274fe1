package pglog

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// leastServer is the oldest version of PostgreSQL that is tested.
const leastServer = 150000

// serverSettings are how a server is set up, as far as a store depends on it.
type serverSettings struct {
	version     int
	fsync       bool
	fullPages   bool
	commit      string // synchronous_commit
	standby     bool
	readOnly    bool
	encoding    string
	schema      bool  // there is a schema worldkernel, and something in it
	store       *bool // with a store in it; nil: this user may not look
	storeSchema int   // its version, where there is a store
	storeID     string
}

func (s *Store) lookAtServer(ctx context.Context) (serverSettings, error) {
	var v serverSettings
	err := s.row(ctx, sqlServer, nil, &v.version, &v.fsync, &v.fullPages, &v.commit, &v.standby, &v.readOnly,
		&v.encoding, &v.schema, &v.store)
	if err == nil && v.store != nil && *v.store {
		err = s.row(ctx, sqlMeta, nil, &v.storeSchema, &v.storeID)
	}
	if errors.Is(err, pgx.ErrNoRows) {
		err = refuse(OtherSchema, "its table meta is empty")
	}
	return v, refusedBy(err)
}

// refuseServer returns the first reason why nothing durable can be kept there, if there is one.
func (v *serverSettings) refuseServer() error {
	if all := v.serverFaults(); len(all) > 0 {
		return all[0]
	}
	return nil
}

// serverFaults are all reasons why nothing durable can be kept there.
func (v *serverSettings) serverFaults() (all []error) {
	for _, f := range []struct {
		is  bool
		err error
	}{
		{v.version < leastServer, refuse(OldServer, "it is %s", v.release())},
		{!v.fsync, refuse(Unsynced, "fsync")},
		{!v.fullPages, refuse(TornPages, "full_page_writes")},
		{v.commit == "off" || v.commit == "local", refuse(Unacknowledged, "it is %s", v.commit)},
		{v.standby, refuse(Standby, "pg_is_in_recovery")},
		{v.readOnly && !v.standby, refuse(ReadOnly, "transaction_read_only")}, // a standby always is
		{v.encoding != "UTF8", refuse(OtherEncoding, "it is %s", v.encoding)},
	} {
		if f.is {
			all = append(all, f.err)
		}
	}
	return all
}

// release is the server's version as people write it.
func (v *serverSettings) release() string {
	return fmt.Sprintf("%d.%d", v.version/10000, v.version%10000)
}

// refuseSchema returns why this program can not use what the database holds, if so.
func (v *serverSettings) refuseSchema() error {
	switch {
	case !v.schema:
		return refuse(NoStore, "no schema worldkernel")
	case v.store == nil:
		return refuse(Forbidden, "USAGE")
	case !*v.store:
		return refuse(OtherSchema, "it has no table meta")
	case v.storeSchema != schemaVersion:
		return refuse(OtherVersion, "schema %d, this program has %d", v.storeSchema, schemaVersion)
	}
	return nil
}

// row reads the one row that a statement answers with; pgx.ErrNoRows where it does with none.
// It is unknown whether a statement took effect that returns any other error.
func (s *Store) row(ctx context.Context, sql string, args []any, into ...any) error {
	return s.rowBy(ctx, s.pool, sql, args, into...)
}

func (s *Store) rowBy(ctx context.Context, pool *pgxpool.Pool, sql string, args []any, into ...any) error {
	found := false
	err := s.rowsBy(ctx, pool, sql, args, func(r pgx.Rows) error {
		found = true
		return r.Scan(into...)
	})
	if err == nil && !found {
		err = pgx.ErrNoRows
	}
	return err
}

// rows reads all rows that a statement answers with. What the server has warned of is an error:
// so it says that it waits no longer for a standby.
func (s *Store) rows(ctx context.Context, sql string, args []any, each func(pgx.Rows) error) error {
	return s.rowsBy(ctx, s.pool, sql, args, each)
}

func (s *Store) rowsBy(ctx context.Context, pool *pgxpool.Pool, sql string, args []any, each func(pgx.Rows) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Patience/tries)
	defer cancel()
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	warned := conn.Conn().PgConn().CustomData()
	delete(warned, warning)
	rows, err := conn.Query(ctx, sql, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := each(rows); err != nil {
			return unreadable(err)
		}
	}
	if err := rows.Err(); err != nil {
		return unreadable(err)
	}
	if text, ok := warned[warning]; ok {
		return fmt.Errorf("pglog: the server warns: %v", text)
	}
	return nil
}

// fixed is bytes of a length that a column has to have.
type fixed struct{ into []byte }

// ScanBytes implements pgtype.BytesScanner.
func (f *fixed) ScanBytes(v []byte) error {
	if len(v) != len(f.into) {
		return fmt.Errorf("%d bytes, and not %d", len(v), len(f.into))
	}
	copy(f.into, v)
	return nil
}
