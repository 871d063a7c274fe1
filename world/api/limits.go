package api

import "time"

// Limits bound what callers can ask of a server. A field that is 0 has its
// default.
type Limits struct {
	BodyBytes   int64 // of a request; 0: DefaultBodyBytes
	BulkBytes   int64 // of many events at once; 0: DefaultBulkBytes
	HeaderBytes int   // of a request; 0: DefaultHeaderBytes

	Connections int           // at once; 0: DefaultConnections, or a quarter of the descriptors that the process may have
	BodyRate    int64         // bytes of a body that have to come in a second; 0: DefaultBodyRate
	BodyGrace   time.Duration // that a body may be behind; 0: DefaultBodyGrace

	Requests  int // answered at once, followers apart; 0: DefaultRequests
	Followers int // streams of records at once; 0: DefaultFollowers
	Page      int // items of a list; 0: DefaultPage
	Scan      int // records that a page of a list looks at; 0: DefaultScan
	Ticks     int // of one step; 0: DefaultTicks

	Head      time.Duration // of a request, without its body; 0: DefaultHead
	Read      time.Duration // a request, with its body; 0: DefaultRead
	Answer    time.Duration // from the request to its answer; 0: DefaultAnswer
	Verify    time.Duration // likewise, of a verification and of what waits for one; 0: DefaultVerify
	Idle      time.Duration // between two requests on a connection; 0: DefaultIdle
	Heartbeat time.Duration // a stream says so often that it lives; 0: DefaultHeartbeat
	Flush     time.Duration // a follower takes so long at most to read what it is sent; 0: DefaultFlush
}

// The defaults of Limits.
const (
	DefaultBodyBytes   = 1 << 20
	DefaultBulkBytes   = 64 << 20
	DefaultHeaderBytes = 16 << 10

	DefaultConnections = 512
	DefaultBodyRate    = 4 << 10
	DefaultBodyGrace   = 5 * time.Second

	DefaultRequests  = 64
	DefaultFollowers = 64
	DefaultPage      = 1000
	DefaultScan      = 100_000
	DefaultTicks     = 1000

	DefaultHead      = 10 * time.Second
	DefaultRead      = time.Minute
	DefaultAnswer    = time.Minute
	DefaultVerify    = 10 * time.Minute
	DefaultIdle      = 2 * time.Minute
	DefaultHeartbeat = 15 * time.Second
	DefaultFlush     = 10 * time.Second
)

// usualPage is how many items of a list are sent where the caller names no limit.
const usualPage = 100

func (l Limits) withDefaults() Limits {
	l.BodyBytes = orDefault(l.BodyBytes, DefaultBodyBytes)
	l.BulkBytes = orDefault(l.BulkBytes, DefaultBulkBytes)
	l.HeaderBytes = orDefault(l.HeaderBytes, DefaultHeaderBytes)
	l.Connections = orDefault(l.Connections, min(DefaultConnections, descriptors()/4))
	l.BodyRate = orDefault(l.BodyRate, DefaultBodyRate)
	l.BodyGrace = orDefault(l.BodyGrace, DefaultBodyGrace)
	l.Requests = orDefault(l.Requests, DefaultRequests)
	l.Followers = orDefault(l.Followers, DefaultFollowers)
	l.Page = orDefault(l.Page, DefaultPage)
	l.Scan = orDefault(l.Scan, DefaultScan)
	l.Ticks = orDefault(l.Ticks, DefaultTicks)
	l.Head = orDefault(l.Head, DefaultHead)
	l.Read = orDefault(l.Read, DefaultRead)
	l.Answer = orDefault(l.Answer, DefaultAnswer)
	l.Verify = orDefault(l.Verify, DefaultVerify)
	l.Idle = orDefault(l.Idle, DefaultIdle)
	l.Heartbeat = orDefault(l.Heartbeat, DefaultHeartbeat)
	l.Flush = orDefault(l.Flush, DefaultFlush)
	return l
}

func orDefault[T int | int64 | time.Duration](n, otherwise T) T {
	if n <= 0 {
		return otherwise
	}
	return n
}
