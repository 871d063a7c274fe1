package pglog

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// State is why a store or a world in it is not used as it is.
type State string

// The refusals of a store. Each has its words and its next step in wordsOf.
const (
	BadURL         State = "bad-url"
	Plaintext      State = "plaintext"
	Unreachable    State = "unreachable"
	Starting       State = "starting"
	Full           State = "full"
	Unauthorized   State = "unauthorized"
	NoDatabase     State = "no-database"
	Forbidden      State = "forbidden"
	OldServer      State = "old-server"
	Unsynced       State = "unsynced"
	TornPages      State = "torn-pages"
	Unacknowledged State = "unacknowledged"
	Standby        State = "standby"
	ReadOnly       State = "read-only"
	OtherEncoding  State = "other-encoding"
	NoStore        State = "no-store"
	OtherSchema    State = "other-schema"
	OtherVersion   State = "other-version"
	OtherStore     State = "other-store"
	BadWorldID     State = "bad-world-id"
	NoKey          State = "no-key"
	Unsealed       State = "unsealed"
	NoWorld        State = "no-world"
	NoNode         State = "no-node"
	WorldExists    State = "world-exists"
	WorldMade      State = "world-made"
	WorldMoved     State = "world-moved"
	WrongSeal      State = "wrong-seal"
	Owned          State = "owned"
)

// words are what is said of a state: why it is refused, and what to do.
type words struct{ why, next string }

func wordsOf() map[State]words {
	return map[State]words{
		BadURL:         {"the URL of the store cannot be read", "write it as postgres://user@host:5432/database?sslmode=verify-full"},
		Plaintext:      {"the connection would not be encrypted, and leaves this machine", "add sslmode=verify-full to the URL, and sslrootcert where the authority is your own"},
		Unreachable:    {"the server cannot be reached", "look whether it runs and listens there, and whether a firewall is between"},
		Starting:       {"the server is starting, stopping or recovering", "try again when it accepts connections; pg_isready tells"},
		Full:           {"the server has no connection left", "raise max_connections, or put a pooler in transaction mode between"},
		Unauthorized:   {"the server does not accept this user", "look at user, password and certificate of the URL, and at pg_hba.conf"},
		NoDatabase:     {"the database does not exist", "create it with createdb"},
		Forbidden:      {"the user lacks a privilege in the schema worldkernel", "connect as a role that has it: docs/postgres.md, Roles, has what readers, nodes and who makes a store need"},
		OldServer:      {"the server is older than PostgreSQL 15", "upgrade it"},
		Unsynced:       {"fsync is off: what the server acknowledges may be lost", "set fsync = on, and restore from a backup if the machine went down meanwhile"},
		TornPages:      {"full_page_writes is off: a crash may tear pages", "set full_page_writes = on"},
		Unacknowledged: {"synchronous_commit is such that what is acknowledged may be lost", "set synchronous_commit = on for the server, this database and this user"},
		Standby:        {"the server is a standby, which takes no writes", "connect to the primary, or name all servers and target_session_attrs=read-write in the URL"},
		ReadOnly:       {"transactions are read-only here", "set default_transaction_read_only = off for this database and this user"},
		OtherEncoding:  {"the database is not in UTF-8", "create it with createdb -E UTF8 -T template0"},
		NoStore:        {"there is no store in this database", "make one: worldctl store init"},
		OtherSchema:    {"the schema worldkernel is not one that a store has made", "use another database, or rename that schema"},
		OtherVersion:   {"the store is of another version of this program", "use that version, or move the worlds to a store of this one with it"},
		OtherStore:     {"this is not the store that it was", "look which database the URL leads to now"},
		BadWorldID:     {"this cannot be the id of a world", "use letters, digits and - _ . / between them, 128 bytes at most"},
		NoKey:          {"the world's key is missing or too short to seal with", "open its keyring first"},
		Unsealed:       {"the keyring has no passphrase, and whoever reads the database would have the keys", "seal it: --passphrase-file FILE, or WORLDCTL_PASSPHRASE; worldctl keys reseal changes the passphrase"},
		NoNode:         {"there is no such node that is alive", "worldctl node list shows those that there are"},
		NoWorld:        {"there is no such world in the store", "worldctl init ID makes one; worldctl store status lists them"},
		WorldExists:    {"the store has a world of this id", "choose another id"},
		WorldMade:      {"the world is still being made, by a move or a fork", "wait for that to end, or begin it again"},
		WorldMoved:     {"the world has been moved out of this store", "open it where it is now"},
		WrongSeal:      {"the seal over the world's head does not fit: it was changed by somebody without its key, or the keyring is another world's", "compare the keyring; restore the row from a backup"},
		Owned:          {"another process owns the world", "stop it there, or take the world over with --take"},
	}
}

// RefusedError says why a store, or a world in it, is not used as it is.
type RefusedError struct {
	State State
	About string // the world, setting or server that it is about; may be empty
	Err   error  // what the server or pgx said; may be nil
}

func (e *RefusedError) Error() string {
	text := "pglog: " + wordsOf()[e.State].why
	if e.About != "" {
		text += " (" + e.About + ")"
	}
	if e.Err != nil {
		text += ": " + inLine(e.Err.Error())
	}
	return text
}

// inLine joins the lines of what pgx says of several addresses.
func inLine(text string) string {
	return strings.NewReplacer(":\n\t", ": ", "\n\t", "; ", "\n", "; ").Replace(text)
}

func (e *RefusedError) Unwrap() error { return e.Err }

// Next is what to do, as a person would be told.
func (e *RefusedError) Next() string { return wordsOf()[e.State].next }

func refuse(s State, format string, args ...any) error {
	return &RefusedError{State: s, About: fmt.Sprintf(format, args...)}
}

// refusedBy makes a *RefusedError of what the server says to who may not do something, or of
// how no connection came about; everything else it returns as it is.
func refusedBy(err error) error {
	var said *pgconn.PgError
	switch {
	case errors.As(err, &said):
		if s := stateOfCode(said.Code); s != "" {
			return &RefusedError{State: s, Err: err}
		}
	case errors.Is(err, context.Canceled):
	case errors.As(err, new(*pgconn.ConnectError)):
		return &RefusedError{State: Unreachable, Err: err}
	}
	return err
}

// stateOfCode is by SQLSTATE, appendix A of PostgreSQL's documentation.
func stateOfCode(code string) State {
	switch code {
	case "28000", "28P01":
		return Unauthorized
	case "3D000":
		return NoDatabase
	case "42501":
		return Forbidden
	case "53300":
		return Full
	case "57P01", "57P02", "57P03":
		return Starting
	case "25006":
		return ReadOnly
	case "42P01", "42703", "42804", "42883", "42P10": // a table, column, type, function or constraint is missing
		return OtherSchema
	}
	return ""
}

// refusePlaintext refuses to send anything to another machine that is not encrypted.
func refusePlaintext(cfg *pgxpool.Config) error {
	c := cfg.ConnConfig
	if c.TLSConfig == nil && !local(c.Host) {
		return refuse(Plaintext, "host %s", c.Host)
	}
	for _, f := range c.Fallbacks {
		if f.TLSConfig == nil && !local(f.Host) {
			return refuse(Plaintext, "host %s, where encryption is only preferred", f.Host)
		}
	}
	return nil
}

// local reports whether a host of a URL is this machine: a socket, or its loopback.
func local(host string) bool {
	network, _ := pgconn.NetworkAddress(host, 0)
	return network == "unix" || host == "localhost" || net.ParseIP(host).IsLoopback()
}
