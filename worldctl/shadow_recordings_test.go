package worldctl

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/internal/recording"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// shadowed is what worldctl shadow answers.
type shadowed struct {
	governance.Report
	Hash string `json:"report_hash"`
	Same bool   `json:"no_op"`
}

// shadowOf runs worldctl shadow, which has to find differences or none.
func shadowOf(t *testing.T, dir string, code int, args ...string) shadowed {
	t.Helper()
	got, out, said := outcome(t, append([]string{"-w", dir, "shadow", "-o", "json"}, args...)...)
	require.Equal(t, code, got, said)
	var s shadowed
	require.NoError(t, json.Unmarshal([]byte(out), &s))
	require.Equal(t, code == exitOK, s.Same)
	require.Equal(t, s.Same, s.NoOp())
	return s
}

// edited returns the files of a world, one of them changed: old to replacement.
func edited(t *testing.T, dir, file, old, replacement string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "edited")
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		require.NoError(t, err)
		name, err := filepath.Rel(dir, path)
		require.NoError(t, err)
		switch {
		case e.IsDir() && e.Name() == ".world":
			return fs.SkipDir
		case e.IsDir():
			return os.MkdirAll(filepath.Join(out, name), 0o700)
		}
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		if name == file {
			require.Equal(t, 1, bytes.Count(data, []byte(old)), "%s in %s", old, file)
			data = bytes.Replace(data, []byte(old), []byte(replacement), 1)
		}
		return os.WriteFile(filepath.Join(out, name), data, 0o600)
	}))
	return filepath.Join(out, local.ManifestFile)
}

// noCancellations is a policy more.
func noCancellations(t *testing.T, dir string) string {
	t.Helper()
	return edited(t, dir, local.ManifestFile, "\npolicies:\n", "\npolicies:\n"+
		`  - {name: none cancelled, when: 'intent.kind == "tool.cancel_reservation"', decide: deny}`+"\n")
}

const (
	agentFile = "reducers/agent.star"
	agentHead = "def reduce(ctx, state, event):\n"
)

// recordedCancellations counts, in the recording itself, the cancellations of each
// cell.
func recordedCancellations(t *testing.T) map[string]uint64 {
	t.Helper()
	data, err := os.ReadFile(recording.Shared(t, recording.Airline))
	require.NoError(t, err)
	var runs []struct {
		Task  int `json:"task_id"`
		Trial int `json:"trial"`
		Traj  []struct {
			Calls []struct {
				Function struct {
					Name string `json:"name"`
				} `json:"function"`
			} `json:"tool_calls"`
		} `json:"traj"`
	}
	require.NoError(t, json.Unmarshal(data, &runs))
	out := make(map[string]uint64)
	for _, run := range runs {
		for _, message := range run.Traj {
			for _, call := range message.Calls {
				if call.Function.Name == "cancel_reservation" {
					out["agent/"+strconv.Itoa(run.Task)+"."+strconv.Itoa(run.Trial)]++
				}
			}
		}
	}
	return out
}

// told is a record as tail prints it.
type told struct {
	ID       uint64 `json:"id"`
	Kind     string `json:"kind"`
	CausedBy uint64 `json:"caused_by"`
	Payload  struct {
		Cell string `json:"cell"`
		Kind string `json:"kind"`
		N    uint64 `json:"n"`
	} `json:"payload"`
}

// recordedJournal returns the records of a world, by their ids.
func recordedJournal(t *testing.T, dir string) map[uint64]told {
	t.Helper()
	out := make(map[uint64]told)
	for _, rec := range jsonLines[told](t, worldctl(t, nil, "-w", dir, "tail", "-o", "jsonl")) {
		out[rec.ID] = rec
	}
	return out
}

// requireFailures holds failing steps to the journal: each says which event it
// fails on, and which step of its cell the history has in its place.
func requireFailures(t *testing.T, journal map[uint64]told, s *shadowed) {
	t.Helper()
	require.NotEmpty(t, s.Failed)
	require.Len(t, s.Failed, int(s.Counts.Failed))
	require.Equal(t, s.Failed[0].Record, s.Divergence.Record)
	require.Equal(t, s.Failed[0].Cell, s.Divergence.Cell)
	for _, f := range s.Failed {
		then := journal[f.Record]
		require.Equal(t, "cell.stepped", then.Kind, "%+v", f)
		require.Equal(t, f.Cell, then.Payload.Cell, "%+v", f)
		require.Equal(t, f.Step, then.Payload.N, "%+v", f)
		require.Equal(t, f.Event, then.CausedBy, "%+v", f)
	}
}

// everything is what a world shows of itself.
type everything struct {
	facts

	Status, Intents, Receipts, Cells string
	Files                            []string
}

func everythingOf(t *testing.T, dir string) everything {
	t.Helper()
	ask := func(args ...string) string { return string(worldctl(t, nil, append([]string{"-w", dir}, args...)...)) }
	return everything{
		facts: verified(t, dir), Status: ask("status", "-o", "json"), Intents: ask("intent", "list", "-o", "jsonl"),
		Receipts: ask("receipt", "list", "-o", "jsonl"), Cells: ask("cell", "list", "-o", "jsonl"),
		Files: names(t, filepath.Join(dir, ".world")),
	}
}

// TestAirlineShadows runs other rules on the recorded runs. What it shadows it does
// not propose, so that all of it is about one history.
func TestAirlineShadows(t *testing.T) {
	recorded := recordedCancellations(t)
	dir := airlineHalfWay(t)
	before, journal := everythingOf(t, dir), recordedJournal(t, dir)

	t.Run("a denial changes its decisions and their cells", func(t *testing.T) {
		s := shadowOf(t, dir, exitFailed, noCancellations(t, dir))
		requireDenied(t, journal, &s, recorded)
		require.Equal(t, cancels, int(s.Counts.Decisions))
		require.EqualValues(t, 1, s.From)
		require.Equal(t, s.Hash, shadowOf(t, dir, exitFailed, noCancellations(t, dir)).Hash, "nothing has come between")
	})
	t.Run("from a snapshot it is what came since", func(t *testing.T) {
		var since uint64
		for _, x := range jsonLines[struct{ Record uint64 }](t, worldctl(t, nil, "-w", dir, "snapshot", "list", "-o", "jsonl")) {
			since = x.Record
		}
		left := make(map[string]uint64)
		for id, rec := range journal {
			if rec.Kind == "intent.emitted" && rec.Payload.Kind == "tool.cancel_reservation" && id > since {
				left[rec.Payload.Cell]++
			}
		}
		require.Less(t, len(left), len(recorded))
		s := shadowOf(t, dir, exitFailed, noCancellations(t, dir), "--from", "half")
		requireDenied(t, journal, &s, left)
		require.Equal(t, since, s.From)
		require.Equal(t, s.Hash, shadowOf(t, dir, exitFailed, noCancellations(t, dir), "--last", "100").Hash, "it is the last one before")
		s = shadowOf(t, dir, exitFailed, noCancellations(t, dir), "--last", strconv.Itoa(len(journal)))
		requireDenied(t, journal, &s, recorded)
	})
	t.Run("a comment changes nothing", func(t *testing.T) {
		comment := edited(t, dir, agentFile, agentHead, "# as ever\n"+agentHead)
		s := shadowOf(t, dir, exitOK, comment)
		require.NotEqual(t, s.Base, s.Candidate)
		shadowOf(t, dir, exitOK, comment, "--from", "half")
	})
	t.Run("code that fails at once", func(t *testing.T) {
		s := shadowOf(t, dir, exitFailed, edited(t, dir, agentFile, agentHead, agentHead+`    fail("always")`+"\n"))
		requireFailures(t, journal, &s)
		require.Len(t, s.Failed, 60, "a cell that has failed is halted")
		require.EqualValues(t, 361, s.Counts.IntentsGone)
		require.Zero(t, s.Counts.IntentsNew+s.Counts.Decisions+s.Counts.Mended+s.Counts.Unknown)
	})
	t.Run("code that fails on a certain event", func(t *testing.T) {
		s := shadowOf(t, dir, exitFailed, edited(t, dir, agentFile, "    for call in message[\"calls\"]:\n",
			"    for call in message[\"calls\"]:\n        if call[\"kind\"] == \"tool.cancel_reservation\":\n            fail(\"not that\")\n"))
		requireFailures(t, journal, &s)
		require.Len(t, s.Failed, len(recorded))
		for _, f := range s.Failed {
			require.Contains(t, recorded, f.Cell)
			require.Contains(t, f.Error, "not that")
			require.Equal(t, "event.submitted", journal[f.Event].Kind)
		}
	})
	t.Run("nobody performs anything", func(t *testing.T) { requireNothingPerformed(t, dir) })
	require.Equal(t, before, everythingOf(t, dir), "nothing has changed")

	t.Run("a recorded shadow adds its record", func(t *testing.T) {
		worldctl(t, nil, "-w", dir, "propose", noCancellations(t, dir))
		proposed := everythingOf(t, dir)
		s := shadowOf(t, dir, exitFailed, "p1")
		after := everythingOf(t, dir)
		require.Equal(t, proposed.StateRoot, after.StateRoot)
		require.Equal(t, proposed.Intents, after.Intents)
		require.Equal(t, proposed.Receipts, after.Receipts)
		require.Equal(t, proposed.Cells, after.Cells)
		require.Equal(t, proposed.Files, after.Files)
		now := recordedJournal(t, dir)
		require.Equal(t, "manifest.shadowed", now[uint64(len(now))].Kind)
		require.Len(t, now, int(s.To)+1)
	})
}

// requireDenied holds a report to the cancellations of each cell: that they are
// denied, and nothing else.
func requireDenied(t *testing.T, journal map[uint64]told, s *shadowed, want map[string]uint64) {
	t.Helper()
	denied := make(map[string]uint64)
	for _, d := range s.Decisions {
		require.Equal(t, "tool.cancel_reservation", d.Kind)
		require.Equal(t, []string{"allow", "deny", "policy_denied"}, []string{d.Was, d.Is, d.Code})
		require.Equal(t, []string{"none cancelled"}, d.Rules)
		then := journal[d.Record]
		require.Equal(t, []string{"intent.emitted", d.Cell, d.Kind}, []string{then.Kind, then.Payload.Cell, then.Payload.Kind})
		denied[d.Cell]++
	}
	require.Equal(t, want, denied)
	require.Equal(t, governance.Counts{Decisions: uint64(len(s.Decisions)), Cells: uint64(len(want))}, s.Counts, "nothing else")
	require.Equal(t, s.CostWas, s.CostIs)
	require.Equal(t, s.Decisions[0].Record, s.Divergence.Record)
	cells := make([]string, 0, len(s.Cells))
	for _, c := range s.Cells {
		cells = append(cells, c.Cell)
		require.Equal(t, []any{"changed", c.StepsWas, false, false}, []any{c.What, c.StepsIs, c.HaltedIs, c.Unknown})
		require.Contains(t, c.State, governance.Change{Path: "/answers/denied", Is: strconv.FormatUint(want[c.Cell], 10)})
	}
	require.Equal(t, slices.Sorted(maps.Keys(want)), cells)
}

// called counts.
type called struct{ calls *atomic.Int64 }

func (c called) Perform(context.Context, host.Call) (host.Result, error) {
	c.calls.Add(1)
	return host.Result{}, fmt.Errorf("nobody may call")
}

// requireNothingPerformed shadows rules whose effects are performed by somebody
// else, who counts.
func requireNothingPerformed(t *testing.T, dir string) {
	t.Helper()
	var calls atomic.Int64
	lw, err := local.Open(dir, local.Options{Adapters: map[string]host.Factory{
		"called": func(host.Setup) (host.Adapter, error) { return called{&calls}, nil },
	}})
	require.NoError(t, err)
	var next manifest.Manifest
	lw.View(func(w *world.Moment) { next = *w.Manifest() })
	next.Effects = maps.Clone(next.Effects)
	for kind, e := range next.Effects {
		e.Adapter, e.Config, e.Files = "called", nil, nil
		next.Effects[kind] = e
	}
	var hashes []governance.Hash
	for range 2 {
		r, err := lw.Rehearse(t.Context(), &next, nil, world.ShadowConfig{})
		require.NoError(t, err)
		require.EqualValues(t, 361, r.Counts.Unknown, "no recorded answer is one of another adapter's")
		require.Zero(t, r.Counts.IntentsNew+r.Counts.Decisions+r.Counts.Mended+r.Counts.Refused)
		h, err := r.Hash()
		require.NoError(t, err)
		hashes = append(hashes, h)
	}
	require.Equal(t, hashes[0], hashes[1])
	require.Zero(t, calls.Load())
	require.Equal(t, host.Stats{}, lw.HostStats())
	require.NoError(t, lw.Close())
}

func TestVilleShadows(t *testing.T) {
	t.Parallel()
	dir := villeSent(t)
	worldctl(t, nil, "-w", dir, "run", "--until-idle")
	before, journal := everythingOf(t, dir), recordedJournal(t, dir)
	const villager = "reducers/villager.star"

	t.Run("a comment changes nothing", func(t *testing.T) {
		s := shadowOf(t, dir, exitOK, edited(t, dir, villager, agentHead, "# as ever\n"+agentHead))
		require.Greater(t, s.Events, uint64(25_965))
	})
	t.Run("a route changes who hears of it", func(t *testing.T) {
		s := shadowOf(t, dir, exitFailed, edited(t, dir, local.ManifestFile,
			"event: villager.met, reducer: villager, key: event.data.who", "event: villager.met, reducer: villager, key: event.data.other"))
		met := uint64(0)
		for _, rec := range journal {
			if rec.Kind == "event.emitted" && strings.HasPrefix(journal[rec.CausedBy].Payload.Cell, "place/") {
				met++
			}
		}
		require.NotZero(t, met)
		require.Equal(t, met, s.Counts.EventsNew, "each goes to the other one")
		require.Equal(t, met, s.Counts.EventsGone)
		require.Equal(t, governance.Counts{EventsNew: met, EventsGone: met, Cells: s.Counts.Cells}, s.Counts)
		for _, c := range s.Cells {
			require.True(t, strings.HasPrefix(c.Cell, "villager/"), c.Cell)
			require.Equal(t, c.StepsWas, c.StepsIs, "there are two to each meeting")
		}
		for _, e := range s.EventsGone {
			require.Equal(t, "event.emitted", journal[e.Record].Kind)
		}
	})
	t.Run("code that fails on a certain event", func(t *testing.T) {
		s := shadowOf(t, dir, exitFailed, edited(t, dir, villager, "    place = place_of(data[\"doing\"])\n",
			"    place = place_of(data[\"doing\"])\n    if place == \"Hobbs Cafe\":\n        fail(\"no coffee\")\n"))
		requireFailures(t, journal, &s)
		require.Len(t, s.Failed, 3, "every villager goes there once")
	})
	require.Equal(t, before, everythingOf(t, dir), "nothing has changed")
}

// approved proposes the world file of a directory, and has it shadowed and
// approved. It returns the proposal.
func approved(t *testing.T, dir, file, key string) string {
	t.Helper()
	var p struct{ Proposal string }
	require.NoError(t, json.Unmarshal(worldctl(t, nil, "-w", dir, "propose", file, "-o", "json"), &p))
	code, _, said := outcome(t, "-w", dir, "shadow", p.Proposal)
	require.Contains(t, []int{exitOK, exitFailed}, code, said)
	worldctl(t, nil, "-w", dir, "approve", p.Proposal, "--key", key)
	return p.Proposal
}

// TestAirlineUpgradeMigratesAllCellsOrNone puts other code in force in a world
// that has run, and takes the world back to before that.
func TestAirlineUpgradeMigratesAllCellsOrNone(t *testing.T) {
	t.Parallel()
	dir := airlineHalfWay(t)
	key := filepath.Join(t.TempDir(), "alice")
	worldctl(t, nil, "keys", "new", "--approver", key)
	migrating := func(body string) string {
		return edited(t, dir, agentFile, agentHead, "def migrate(state):\n"+body+"    state[\"edition\"] = state.get(\"edition\", 1) + 1\n    return state\n\n"+agentHead)
	}
	type agent struct {
		Edition int
		Calls   int
	}
	most, cell := 0, ""
	for name, s := range states[agent](t, dir) {
		if s.Calls > most {
			most, cell = s.Calls, name
		}
	}

	before := everythingOf(t, dir)
	p := approved(t, dir, migrating(fmt.Sprintf("    if state[\"calls\"] == %d:\n        fail(\"too many\")\n", most)), key)
	asked := everythingOf(t, dir)
	code, _, said := outcome(t, "-w", dir, "apply", p)
	require.Equal(t, exitConflict, code, said)
	require.Contains(t, said, cell)
	require.Contains(t, said, "hint: ")
	require.Equal(t, asked, everythingOf(t, dir), "one cell fails, and nothing has changed")
	require.Equal(t, before.StateRoot, asked.StateRoot)

	p = approved(t, dir, migrating(""), key)
	require.Contains(t, string(worldctl(t, nil, "-w", dir, "apply", p)), "cells migrated: 60\n")
	requireEdition := func(want int) {
		t.Helper()
		all := states[agent](t, dir)
		require.Len(t, all, 60)
		for name, s := range all {
			require.Equal(t, want, s.Edition, name)
		}
		verified(t, dir)
	}
	requireEdition(2)

	worldctl(t, nil, "-w", dir, "rollback", "half", "--reason", "to where the old code was", "--ack", "--with-manifest")
	requireEdition(2)
	var back struct{ Stage, Candidate string }
	require.NoError(t, json.Unmarshal(worldctl(t, nil, "-w", dir, "proposal", "show", "p3", "-o", "json"), &back))
	require.Equal(t, "proposed", back.Stage)
	var was, is struct {
		Manifest struct{ Hash string }
	}
	require.NoError(t, json.Unmarshal([]byte(before.Status), &was))
	require.Equal(t, was.Manifest.Hash, back.Candidate, "the manifest that was in force then")
	require.NoError(t, json.Unmarshal(worldctl(t, nil, "-w", dir, "status", "-o", "json"), &is))
	require.NotEqual(t, was.Manifest.Hash, is.Manifest.Hash, "nobody has approved it")
	worldctl(t, nil, "-w", dir, "run", "--until-idle")
	requireEdition(2)
	require.Equal(t, 361, started(t, dir), "the recorded receipts answered")
	worldctl(t, nil, "-w", dir, "replay")

	// Without a snapshot since the upgrade the shadow would begin with the old states.
	worldctl(t, nil, "-w", dir, "snapshot", "create", "upgraded")
	p = approved(t, dir, migrating("    if \"edition\" not in state:\n        fail(\"too old\")\n"), key)
	worldctl(t, nil, "-w", dir, "apply", p)
	requireEdition(3)
	upgraded := everythingOf(t, dir)
	code, _, said = outcome(t, "-w", dir, "rollback", "half", "--reason", "once more", "--ack")
	require.Equal(t, exitConflict, code, said)
	require.Contains(t, said, "too old")
	require.Contains(t, said, "hint: ")
	require.Equal(t, upgraded, everythingOf(t, dir), "a cell cannot be taken there, and nothing has changed")
}
