package api

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/worldkernel/worldkernel/internal/file"
)

// Limits bound what callers can ask of a server. A field that is 0 has its
// default.
type Limits struct {
	BodyBytes   int64 // of a request; 0: DefaultBodyBytes
	BulkBytes   int64 // of many events at once; 0: DefaultBulkBytes
	HeaderBytes int   // of a request; 0: DefaultHeaderBytes

	Connections Connections
	BodyRate    int64         // bytes of a body that have to come in a second; 0: DefaultBodyRate
	BodyGrace   time.Duration // that a body may be behind; 0: DefaultBodyGrace

	Requests      Slots         // answered, those below apart; All 0: DefaultRequests
	Followers     Slots         // streams of records; All 0: DefaultFollowers
	Waits         Slots         // of workers for attempts; All 0: DefaultWaits
	Verifications Slots         // and shadows; All 0: DefaultVerifications
	Turns         Slots         // that work on an answer, of those above; All 0: two for each processor
	Health        int           // that are told at once how the server is; 0: DefaultHealth
	Strangers     Strangers     // requests without a token that is known
	Wait          time.Duration // for a slot; 0: DefaultWait

	Page      int // items of a list; 0: DefaultPage
	PageBytes int // of a list's items as the world has them, but for the first; 0: DefaultPageBytes
	Scan      int // records that a page of a list looks at; 0: DefaultScan
	Ticks     int // of one step; 0: DefaultTicks

	Head      time.Duration // of a request, without its body; 0: DefaultHead
	Read      time.Duration // a request, with its body; 0: DefaultRead
	Answer    time.Duration // from the request to its answer; 0: DefaultAnswer
	Verify    time.Duration // likewise, of a verification and of what waits for one; 0: DefaultVerify
	Shadow    time.Duration // of a shadow; 0: DefaultShadow
	Idle      time.Duration // between two requests on a connection; 0: DefaultIdle
	Heartbeat time.Duration // a stream says so often that it lives; 0: DefaultHeartbeat
	Moving    time.Duration // a call waits so long for a world that is between two processes; 0: DefaultMoving
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

	DefaultRequests      = 64
	DefaultFollowers     = 64
	DefaultWaits         = 64
	DefaultVerifications = 16
	DefaultHealth        = 4
	DefaultStrangers     = 100
	DefaultWait          = 2 * time.Second

	DefaultPage      = 1000
	DefaultPageBytes = 4 << 20
	DefaultScan      = 100_000
	DefaultTicks     = 1000

	DefaultHead      = 10 * time.Second
	DefaultRead      = time.Minute
	DefaultAnswer    = time.Minute
	DefaultVerify    = 10 * time.Minute
	DefaultShadow    = 30 * time.Second
	DefaultIdle      = 2 * time.Minute
	DefaultHeartbeat = 15 * time.Second
	DefaultMoving    = 15 * time.Second // longer than a process is missed for, before another takes its worlds over
	DefaultFlush     = 10 * time.Second
)

// usualPage is how many items of a list are sent where the caller names no limit.
const usualPage = 100

func (l Limits) withDefaults() Limits {
	l.BodyBytes = orDefault(l.BodyBytes, DefaultBodyBytes)
	l.BulkBytes = orDefault(l.BulkBytes, DefaultBulkBytes)
	l.HeaderBytes = orDefault(l.HeaderBytes, DefaultHeaderBytes)
	l.Connections.All = orDefault(l.Connections.All, min(DefaultConnections, file.Descriptors()/4))
	l.Connections.Token = orDefault(l.Connections.Token, max(1, l.Connections.All/4))
	l.Connections.Unknown = orDefault(l.Connections.Unknown, max(1, l.Connections.All/2))
	l.BodyRate = orDefault(l.BodyRate, DefaultBodyRate)
	l.BodyGrace = orDefault(l.BodyGrace, DefaultBodyGrace)
	l.Requests = l.Requests.withDefaults(DefaultRequests)
	l.Followers = l.Followers.withDefaults(DefaultFollowers)
	l.Waits = l.Waits.withDefaults(DefaultWaits)
	l.Verifications = l.Verifications.withDefaults(DefaultVerifications)
	l.Turns = l.Turns.withDefaults(2 * runtime.GOMAXPROCS(0)) // a quarter of which are half the processors
	l.Health = orDefault(l.Health, DefaultHealth)
	l.Strangers.All = orDefault(l.Strangers.All, DefaultStrangers)
	l.Strangers.Address = orDefault(l.Strangers.Address, max(1, l.Strangers.All/5))
	l.Wait = orDefault(l.Wait, DefaultWait)
	l.Page = orDefault(l.Page, DefaultPage)
	l.PageBytes = orDefault(l.PageBytes, DefaultPageBytes)
	l.Scan = orDefault(l.Scan, DefaultScan)
	l.Ticks = orDefault(l.Ticks, DefaultTicks)
	l.Head = orDefault(l.Head, DefaultHead)
	l.Read = orDefault(l.Read, DefaultRead)
	l.Answer = orDefault(l.Answer, DefaultAnswer)
	l.Verify = orDefault(l.Verify, DefaultVerify)
	l.Shadow = orDefault(l.Shadow, DefaultShadow)
	l.Idle = orDefault(l.Idle, DefaultIdle)
	l.Heartbeat = orDefault(l.Heartbeat, DefaultHeartbeat)
	l.Moving = orDefault(l.Moving, DefaultMoving)
	l.Flush = orDefault(l.Flush, DefaultFlush)
	return l
}

func (s Slots) withDefaults(all int) Slots {
	s.All = orDefault(s.All, all)
	s.Token = orDefault(s.Token, max(1, s.All/4))
	s.World = orDefault(s.World, max(1, s.All*3/4))
	return s
}

// Set sets a limit of how much goes on at once, as NAME=N.
func (l *Limits) Set(text string) error {
	name, value, _ := strings.Cut(text, "=")
	for _, x := range l.named() {
		if x.Name != name {
			continue
		}
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 {
			return fmt.Errorf("limit %s: %q is not a number from 1 on", name, value)
		}
		*x.value = n
		return nil
	}
	return fmt.Errorf("there is no limit %q", name)
}

// Limit is a limit of how much goes on at once, which a problem names and Set sets.
type Limit struct {
	Name  string
	Value int
	Of    string // what it bounds

	value *int
}

// Named returns the limits that Set knows, with their values, or their defaults where
// these are 0.
func (l Limits) Named() []Limit {
	l = l.withDefaults()
	all := l.named()
	for i := range all {
		all[i].Value = *all[i].value
	}
	return all
}

func (l *Limits) named() []Limit {
	all := []Limit{
		{Name: "connections", Of: "connections", value: &l.Connections.All},
		{Name: "connections.token", Of: "connections that have shown a token", value: &l.Connections.Token},
		{Name: "connections.unknown", Of: "connections that have shown no token that is known", value: &l.Connections.Unknown},
	}
	for _, k := range []struct {
		name, of string
		slots    *Slots
	}{
		{"requests", "requests that are answered", &l.Requests},
		{"followers", "streams of records", &l.Followers},
		{"waits", "workers' requests that wait for attempts", &l.Waits},
		{"verifications", "verifications and shadows", &l.Verifications},
		{"turns", "requests and streams that take the processor", &l.Turns},
	} {
		all = append(all, Limit{Name: k.name, Of: k.of, value: &k.slots.All},
			Limit{Name: k.name + ".token", Of: k.of + ", of one token", value: &k.slots.Token},
			Limit{Name: k.name + ".world", Of: k.of + ", about one world", value: &k.slots.World})
	}
	return append(all, Limit{Name: "health", Of: "requests of /healthz", value: &l.Health},
		Limit{Name: "strangers", Of: "requests in a second without a token that is known", value: &l.Strangers.All},
		Limit{Name: "strangers.address", Of: "such requests, from one address", value: &l.Strangers.Address})
}

func orDefault[T int | int64 | time.Duration](n, otherwise T) T {
	if n <= 0 {
		return otherwise
	}
	return n
}
