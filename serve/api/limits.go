package api

import (
	"fmt"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/worldkernel/worldkernel/internal/file"
)

// Limits bound what callers can ask of a server. A field that is not above 0 has its default, which
// usualLimits says.
type Limits struct {
	BodyBytes   int64 // of a request
	BulkBytes   int64 // of many events at once
	HeaderBytes int   // of a request

	Connections Connections
	BodyRate    int64         // bytes of a body that have to come in a second
	BodyGrace   time.Duration // that a body may be behind

	Requests      Slots         // answered, those below apart
	Followers     Slots         // streams of records
	Waits         Slots         // of workers for attempts
	Verifications Slots         // and shadows
	Turns         Slots         // that work on an answer, of those above
	Health        int           // that are told at once how the server is
	Strangers     Strangers     // requests without a token that is known
	Wait          time.Duration // for a slot

	Page      int // items of a list
	PageBytes int // of a list's items as the world has them, but for the first
	Scan      int // records that a page of a list looks at
	Ticks     int // of one step

	Head      time.Duration // of a request, without its body
	Read      time.Duration // a request, with its body
	Answer    time.Duration // from the request to its answer
	Verify    time.Duration // likewise, of a verification and of what waits for one
	Shadow    time.Duration // of a shadow
	Idle      time.Duration // between two requests on a connection
	Heartbeat time.Duration // a stream says so often that it lives
	Moving    time.Duration // a call waits so long for a world that is between two processes
	Flush     time.Duration // a follower takes so long at most to read what it is sent
}

// usualLimits are the defaults of Limits, but for those that follow from others.
func usualLimits() Limits {
	return Limits{
		BodyBytes: 1 << 20, BulkBytes: 64 << 20, HeaderBytes: 16 << 10,
		Connections: Connections{All: min(512, file.Descriptors()/4)}, BodyRate: 4 << 10, BodyGrace: 5 * time.Second,
		Requests: Slots{All: 64}, Followers: Slots{All: 64}, Waits: Slots{All: 64}, Verifications: Slots{All: 16},
		Turns:  Slots{All: 2 * runtime.GOMAXPROCS(0)}, // a quarter of which are half the processors
		Health: 4, Strangers: Strangers{All: 100}, Wait: 2 * time.Second,
		Page: 1000, PageBytes: 4 << 20, Scan: 100_000, Ticks: 1000,
		Head: 10 * time.Second, Read: time.Minute, Answer: time.Minute, Verify: 10 * time.Minute, Shadow: 30 * time.Second,
		Idle: 2 * time.Minute, Heartbeat: 15 * time.Second,
		Moving: 15 * time.Second, // longer than a process is missed for, before another takes its worlds over
		Flush:  10 * time.Second,
	}
}

// usualPage is how many items of a list are sent where the caller names no limit.
const usualPage = 100

func (l Limits) withDefaults() Limits {
	fillLimits(reflect.ValueOf(&l).Elem(), reflect.ValueOf(usualLimits()))
	of := Limits{
		Connections: Connections{Token: max(1, l.Connections.All/4), Unknown: max(1, l.Connections.All/2)},
		Strangers:   Strangers{Address: max(1, l.Strangers.All/5)},
		Requests:    l.Requests.parts(), Followers: l.Followers.parts(), Waits: l.Waits.parts(), Verifications: l.Verifications.parts(), Turns: l.Turns.parts(),
	}
	fillLimits(reflect.ValueOf(&l).Elem(), reflect.ValueOf(of))
	return l
}

// fillLimits sets each number that is not above 0 to a usual one.
func fillLimits(have, usual reflect.Value) {
	for i := range have.NumField() {
		switch f := have.Field(i); {
		case f.Kind() == reflect.Struct:
			fillLimits(f, usual.Field(i))
		case f.Int() <= 0:
			f.Set(usual.Field(i))
		}
	}
}

// parts are the usual bounds for one token and about one world.
func (s Slots) parts() Slots { return Slots{Token: max(1, s.All/4), World: max(1, s.All*3/4)} }

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
