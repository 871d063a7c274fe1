package pglog

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
)

// The defaults of Options.
const (
	DefaultPatience    = 30 * time.Second
	DefaultLease       = 10 * time.Second
	DefaultConnections = 8
)

const (
	// tries are how many times a statement may be answered by nothing at all within Patience.
	tries = 3
	// beats are how many times a lease is prolonged before it would run out.
	beats = 3
	// connectPatience is how long a server may take to accept a connection.
	connectPatience = 5 * time.Second
	// warning is where a connection keeps what its server has warned of.
	warning = "warning"
)

// Options are how a process uses a store. The zero value is good.
type Options struct {
	// Node is the name of this process among those that own worlds in the store. A process that
	// starts under the name of one before takes its worlds as those of one that has ended.
	// Empty: the machine's name and the process' number.
	Node string
	// URL is where this process answers for its worlds, and Version which program it is, for other
	// nodes and for people; both may be empty.
	URL, Version string
	// Key returns the key of a store's nodes, which the database does not have: URL is sealed with it, and
	// so is every URL that others believe. Nil: no URL is believed.
	Key func(store string) ([]byte, error)
	// Lease is how long this process is taken to be alive after it was last heard of, so that
	// nobody takes its worlds over unless told to. It fences nothing.
	Lease time.Duration
	// Patience is how long an answer that was lost is looked for before it is
	// journal.ErrUnknown.
	Patience time.Duration
	// Connections are how many there are at most, beside the one of the lease.
	Connections int32
	// Store is the id that the store is expected to have, as Status returns it. Empty: any.
	Store string
}

func (o Options) withDefaults() Options {
	o.Lease = cmp.Or(o.Lease, DefaultLease)
	o.Patience = cmp.Or(o.Patience, DefaultPatience)
	o.Connections = cmp.Or(o.Connections, DefaultConnections)
	if o.Node == "" {
		host, _ := os.Hostname() // without, the number has to do
		o.Node = fmt.Sprintf("%s/%d", host, os.Getpid())
	}
	return o
}

// Store is a process' connections to a store of worlds. It is safe for concurrent use.
type Store struct {
	opts Options
	pool *pgxpool.Pool
	own  *pgxpool.Pool // one connection, for what tells others that this process lives
	run  pgtype.UUID   // of this Store, among those of its node
	id   string        // as Status returns it
	pack *packer
	key  func() ([]byte, error) // of the store's nodes

	stats   stats
	gives   atomic.Bool            // up what others want
	resting atomic.Pointer[string] // see Tell
	lease   atomic.Int64           // when it runs out, in nanoseconds since 1970; 0: there is none yet
	grace   atomic.Int64           // until when nobody is taken to be dead; likewise

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	queue  *queue
	work   sync.WaitGroup // goroutines that use the pool

	mu      sync.Mutex
	beating bool             // the node is entered, and its lease prolonged
	claims  map[string]stand // of worlds that ClaimDue has claimed and nobody has owned yet
}

// Open opens the store in the database of a URL, such as postgres://user@host/database. What
// can not be used, or not safely, is refused with a *RefusedError.
func Open(ctx context.Context, url string, o Options) (*Store, error) {
	s, err := connect(url, o)
	if err != nil {
		return nil, err
	}
	v, err := s.lookAtServer(ctx)
	if err == nil {
		err = errors.Join(v.refuseServer())
	}
	if err == nil {
		err = v.refuseSchema()
	}
	if err == nil && o.Store != "" && o.Store != v.storeID {
		err = refuse(OtherStore, "it is %s, and was %s", v.storeID, o.Store)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	s.id = v.storeID
	if o.URL != "" && o.Key != nil {
		if _, err := s.key(); err != nil {
			s.Close()
			return nil, err
		}
	}
	s.work.Go(s.flush)
	return s, nil
}

// ID returns the store's id, which no other store has.
func (s *Store) ID() string { return s.id }

// connect sees to it that every connection is fit for a pooler, and that what its server warns
// of is not lost. It does not look at the server yet.
func connect(url string, o Options) (*Store, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, &RefusedError{State: BadURL, Err: err} // pgx leaves the password out
	}
	if err := refusePlaintext(cfg); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	cfg.MaxConns = o.Connections
	c := cfg.ConnConfig
	// Nothing is prepared on the server, and bytes are sent as they are: in QueryExecModeExec
	// they would be text, and twice as long.
	c.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	c.ConnectTimeout = cmp.Or(c.ConnectTimeout, connectPatience)
	c.OnNotice = func(conn *pgconn.PgConn, n *pgconn.Notice) {
		if n.SeverityUnlocalized == "WARNING" {
			conn.CustomData()[warning] = n.Message
		}
	}
	if c.RuntimeParams["application_name"] == "" {
		c.RuntimeParams["application_name"] = "worldkernel"
	}
	pack, err := newPacker()
	if err != nil {
		return nil, err
	}
	s := &Store{opts: o, run: newUUID(), pack: pack, queue: newQueue(), claims: map[string]stand{}}
	s.key = sync.OnceValues(s.nodesKey)
	if s.pool, err = pgxpool.NewWithConfig(context.Background(), cfg); err != nil {
		return nil, fmt.Errorf("pglog: %w", err)
	}
	alone := cfg.Copy()
	alone.MaxConns = 1
	if s.own, err = pgxpool.NewWithConfig(context.Background(), alone); err != nil {
		s.pool.Close()
		return nil, fmt.Errorf("pglog: %w", err)
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

// Close ends all that goes on in the store. Worlds that were not released stay this process'
// until its lease has run out, or a process of its name starts.
func (s *Store) Close() {
	s.queue.close()
	s.cancel()
	s.work.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.beating {
		ctx, cancel := context.WithTimeout(context.Background(), connectPatience)
		defer cancel()
		_ = s.rows(ctx, sqlNodeEnds, []any{s.opts.Node, s.run}, nil) // the lease ends by itself, too
	}
	s.own.Close()
	s.pool.Close()
}

// beat enters this process among those that own worlds, and prolongs its lease until Close.
func (s *Store) beat(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.beating {
		return nil
	}
	if err := s.insist(ctx, func(ctx context.Context) error { return s.enter(ctx, true) }); err != nil {
		return err
	}
	s.beating = true
	s.work.Go(func() {
		tick := time.NewTicker(s.opts.Lease / beats)
		defer tick.Stop()
		for {
			select {
			case <-s.ctx.Done():
				return
			case <-tick.C:
			}
			if err := s.enter(s.ctx, false); errors.Is(err, pgx.ErrNoRows) {
				return // another goes by this name, and has the worlds
			}
		}
	})
	return nil
}

// enter writes the lease of this run of the node; first: in the place of another run's.
func (s *Store) enter(ctx context.Context, first bool) error {
	var node string
	asked := time.Now()
	at := s.ownAddress(asked)
	args := []any{s.opts.Node, s.run, s.opts.Lease, first, at.url, s.opts.Version, s.gives.Load(), at.until, at.seal, s.restingText()}
	err := s.rowBy(ctx, s.own, sqlNode, args, &node)
	if err == nil {
		if s.Lapsed() { // the database was away for others, too: they have not been heard again yet
			s.grace.Store(asked.Add(s.opts.Lease / 2).UnixNano())
		}
		s.lease.Store(asked.Add(s.opts.Lease).UnixNano())
	}
	return err
}

// Lapsed reports whether the lease of this process has run out, as far as it knows: others may have its
// worlds by now.
func (s *Store) Lapsed() bool {
	until := s.lease.Load()
	return until > 0 && time.Now().UnixNano() > until
}

// believes reports whether leases that have run out are to be believed: not by who could not prolong its
// own, until the others have had the time to.
func (s *Store) believes() bool { return !s.Lapsed() && time.Now().UnixNano() > s.grace.Load() }

// newUUID returns a random one that nobody can guess.
func newUUID() pgtype.UUID {
	u := pgtype.UUID{Valid: true}
	_, _ = rand.Read(u.Bytes[:]) // which never fails
	u.Bytes[6] = u.Bytes[6]&0x0f | 0x40
	u.Bytes[8] = u.Bytes[8]&0x3f | 0x80
	return u
}
