package worldctl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/journal/pglog"
)

// storeAnswer is how a store stands.
type storeAnswer struct {
	Store    string        `json:"store,omitempty"` // its id
	Schema   int           `json:"schema_version"`  // 0: there is no store
	Has      int           `json:"program_schema_version"`
	Server   string        `json:"server"`
	Settings storeSettings `json:"settings"`
	Faults   []storeFault  `json:"faults"`
	Worlds   []storedWorld `json:"worlds,omitempty"`
}

// storeSettings are those of the server that decide what is durable.
type storeSettings struct {
	Fsync             bool   `json:"fsync"`
	FullPageWrites    bool   `json:"full_page_writes"`
	SynchronousCommit string `json:"synchronous_commit"`
	Encoding          string `json:"server_encoding"`
}

// storeFault is what is not as it must be.
type storeFault struct {
	State string `json:"state"`
	Text  string `json:"text"`
	Next  string `json:"next,omitempty"`
}

type storedWorld struct {
	ID    string `json:"id"`
	State string `json:"state"`
	Owner string `json:"owner,omitempty"`
	Alive bool   `json:"owner_alive"`
	Due   string `json:"due,omitempty"` // when it goes on by itself, that nobody owns: a time, or now
	Owed  int    `json:"owed"`          // attempts of effects that have begun and not ended
	Epoch uint64 `json:"epoch"`
	Head  uint64 `json:"head"`
	Root  string `json:"root"`
	To    string `json:"moved_to,omitempty"`
	Fault string `json:"fault,omitempty"` // of one that is damaged: nothing else of it is known
}

func newStoreCommand(c *cli) *cobra.Command {
	return group(&cobra.Command{Use: "store"},
		c.storeVerb("init", c.initStore), c.storeVerb("status", c.showStore), c.storeVerb("check", c.checkStore))
}

func errWhichStore() error {
	return usagef("type --store postgres://USER@HOST/DATABASE, or put that into "+storeEnv, "which store is meant?")
}

// storeVerb makes a verb of a group about the store as a whole.
func (c *cli) storeVerb(name string, do func(ctx context.Context, url string) error) *cobra.Command {
	return &cobra.Command{
		Use: name,
		RunE: func(cmd *cobra.Command, _ []string) error {
			url := c.storeURL()
			if url == "" {
				return errWhichStore()
			}
			return do(cmd.Context(), url)
		},
	}
}

func (c *cli) initStore(ctx context.Context, url string) error {
	if err := pglog.Init(ctx, url); err != nil {
		return err
	}
	st, err := pglog.ReadStatus(ctx, url)
	if err != nil {
		return err
	}
	return c.object("store", storeAnswerOf(st), func() { fmt.Fprintf(c.stdout, "store %s has schema %d\n", st.Store, st.Schema) })
}

func (c *cli) showStore(ctx context.Context, url string) error {
	st, err := pglog.ReadStatus(ctx, url)
	if err != nil {
		return err
	}
	a := storeAnswerOf(st)
	if len(st.Refused) == 0 {
		if a.Worlds, err = worldsIn(ctx, url); err != nil {
			return err
		}
	}
	return c.object("store", a, func() { c.storeTable(a) })
}

// worldsIn lists the worlds of a store that can be used.
func worldsIn(ctx context.Context, url string) (worlds []storedWorld, err error) {
	s, err := pglog.Open(ctx, url, pglog.Options{})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	for w, err := range s.List(ctx) {
		if err != nil {
			return nil, err
		}
		fault := ""
		if w.Fault != nil {
			fault = inPlain(w.Fault.Error())
		}
		worlds = append(worlds, storedWorld{w.ID, w.State, w.Node, w.Alive, dueText(w.Due), w.Owed, w.Epoch, uint64(w.Head.ID), w.Head.Root.String(), w.To, fault})
	}
	return worlds, nil
}

// dueText says when a world goes on by itself; empty: when it is asked for.
func dueText(due *time.Time) string {
	switch {
	case due == nil:
		return ""
	case due.IsZero():
		return "now"
	}
	return due.UTC().Format(time.RFC3339)
}

func storeAnswerOf(st pglog.Status) storeAnswer {
	a := storeAnswer{
		Store: st.Store, Schema: st.Schema, Has: st.Has, Server: st.Server, Faults: []storeFault{},
		Settings: storeSettings{st.Fsync, st.FullPageWrites, st.SynchronousCommit, st.Encoding},
	}
	for _, err := range st.Refused {
		a.Faults = append(a.Faults, storeFaultOf(err))
	}
	return a
}

func storeFaultOf(err error) storeFault {
	f := storeFault{State: "damaged", Text: inPlain(err.Error()), Next: hintDamaged}
	if refused := (*pglog.RefusedError)(nil); errors.As(err, &refused) {
		f.State, f.Next = string(refused.State), refused.Next()
	}
	return f
}

func (c *cli) storeTable(a storeAnswer) {
	on := map[bool]string{true: "on", false: "off"}
	fmt.Fprintf(c.stdout, "store     %s, schema %d of %d\n", cmp.Or(a.Store, "none"), a.Schema, a.Has)
	fmt.Fprintf(c.stdout, "server    PostgreSQL %s, %s\n", a.Server, a.Settings.Encoding)
	fmt.Fprintf(c.stdout, "settings  fsync %s, full_page_writes %s, synchronous_commit %s\n",
		on[a.Settings.Fsync], on[a.Settings.FullPageWrites], a.Settings.SynchronousCommit)
	for _, f := range a.Faults {
		fmt.Fprintf(c.stdout, "refused   %s\n", f.Text)
	}
	tabulate(c, table.Row{"world", "state", "owner", "due", "owed", "epoch", "head"}, a.Worlds, func(w *storedWorld) table.Row {
		owner := cmp.Or(w.Owner, "nobody")
		if w.Owner != "" && !w.Alive {
			owner += " (gone)"
		}
		switch {
		case w.Fault != "":
			owner = w.Fault
		case w.State == "made" && w.To != "":
			owner += ", again: it had moved to " + w.To
		case w.To != "":
			owner = w.To
		}
		return table.Row{w.ID, w.State, owner, w.Due, w.Owed, w.Epoch, fmt.Sprint("#", w.Head)}
	})
}

func (c *cli) checkStore(ctx context.Context, url string) error {
	st, err := pglog.ReadStatus(ctx, url)
	if err != nil {
		return err
	}
	a := storeAnswerOf(st)
	failed := errors.Join(st.Refused...)
	if failed == nil {
		if failed, err = damageIn(ctx, url, &a); err != nil {
			return err
		}
	}
	if err := c.object("store", a, func() {
		if failed == nil {
			fmt.Fprintln(c.stdout, "all is as it must be")
		}
	}); err != nil {
		return err
	}
	return failed
}

// damageIn looks whether the worlds of a store that can be used are whole, and adds to an answer
// what is not; damaged is all of that.
func damageIn(ctx context.Context, url string, a *storeAnswer) (damaged, err error) {
	s, err := pglog.Open(ctx, url, pglog.Options{})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	for found := range s.Check(ctx) {
		if damage := (*pglog.DamageError)(nil); !errors.As(found, &damage) {
			return nil, found
		}
		a.Faults = append(a.Faults, storeFaultOf(found))
		damaged = errors.Join(damaged, found)
	}
	return damaged, nil
}
