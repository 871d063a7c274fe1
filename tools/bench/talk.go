package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world/local"
)

// talkBench is the size of `bench talk`.
type talkBench struct {
	turns, bytes int
	scope
}

const talkText = `One long conversation.

An agent in Starlark keeps its messages in its cell, and asks a model for the next
one with all of them as params, so many times; each answer is of so many bytes of
made-up text. What the closed world, a bundle and a backup of it take is put in
relation to the messages at the end. While it runs, a log of some megabytes and the
results of the last effects come on top.`

func newTalkCommand(p *program) *cobra.Command {
	var b talkBench
	cmd, f := b.command(p, "talk", talkText, "  bench talk\n  bench talk --turns 200 --rounds 1", 1, b.each(b.round))
	f.IntVar(&b.turns, "turns", 1000, "how many calls")
	f.IntVar(&b.bytes, "bytes", 800, "how long an answer is")
	return cmd
}

// talkRules are the manifest of a world with one agent, under the limits that worlds have
// by default.
func talkRules() string { return rules("agent", inStarlark+asking, "talk.begun") + withEffects }

const talker = `
def reduce(ctx, state, event):
    if event.name == "talk.begun":
        state = {"left": event.data["turns"], "messages": [{"role": "user", "content": "begin"}]}
    else:
        state["messages"].append({"role": "assistant", "content": event.data["payload"]})
    if state["left"] > 0:
        state["left"] -= 1
        ctx.effect("tool.call", {"model": "talker-1", "messages": state["messages"]})
    return state
`

type talkBegun struct {
	To    string `cbor:"to"`
	Turns int    `cbor:"turns"`
}

// talkative is a live adapter that answers with text.
type talkative struct {
	words *words
	bytes int
}

func (t *talkative) Perform(context.Context, host.Call) (host.Result, error) {
	text, err := canon.Marshal(t.words.text(t.bytes))
	return host.Result{Status: receipt.StatusOK, Payload: receipt.Data(text)}, err
}

// words makes text that is about as redundant as a natural language: few words are
// frequent and most are rare.
type words struct {
	random *rand.Rand
	often  *rand.Zipf
	all    []string
}

func newWords(seed uint64) *words {
	w := &words{random: rand.New(rand.NewPCG(seed, 0))}
	w.often = rand.NewZipf(w.random, 1.1, 3, 19_999)
	for range 20_000 {
		var word strings.Builder
		for range 1 + w.random.IntN(4) {
			word.WriteByte("bcdfghklmnprstvw"[w.random.IntN(16)])
			word.WriteByte("aeiou"[w.random.IntN(5)])
			if w.random.IntN(3) == 0 {
				word.WriteByte("lnrst"[w.random.IntN(5)])
			}
		}
		w.all = append(w.all, word.String())
	}
	return w
}

func (w *words) text(bytes int) string {
	var b strings.Builder
	for b.Len() < bytes {
		b.WriteString(w.all[w.often.Uint64()])
		b.WriteByte(' ')
	}
	return b.String()[:bytes]
}

// round has one conversation.
func (b *talkBench) round(ctx context.Context, r *run) {
	w := newWords(1)
	opts := local.Options{Adapters: map[string]host.Factory{
		"echo": func(host.Setup) (host.Adapter, error) { return &talkative{words: w, bytes: b.bytes}, nil },
	}}
	lw := r.world(r.at("world"), talkRules(), talker, opts)
	_, err := lw.Submit(ctx, "talk.begun", talkBegun{To: "a", Turns: b.turns})
	r.must(err)
	m := measure(func() { r.must(lw.Run(ctx)) })
	if done := lw.Status().Intents[receipt.StateCommitted]; done != b.turns {
		r.must(fmt.Errorf("%d calls of %d are committed", done, b.turns))
	}
	content := float64(b.turns * b.bytes)
	size := func(name, path string) {
		bytes, err := sizeOf(path)
		r.must(err)
		r.add(name, "bytes", "", float64(bytes))
		r.add(name+" / messages", "ratio", "<= 3", float64(bytes)/content)
	}
	r.add("CPU", "ms/call", "<= 15", float64(m.CPU.Microseconds())/float64(b.turns)/1000)
	r.add("allocations", "objects/call", "", float64(m.Allocs)/float64(b.turns))
	bytes, err := sizeOf(r.at("world/.world"))
	r.must(err)
	r.add("running world", "bytes", "", float64(bytes))
	r.must(r.bundleOf(ctx, lw))
	size("bundle", r.at("bundle"))
	r.must(lw.Close())
	size("closed world", r.at("world/.world"))
	lw = r.open(r.at("world"), opts)
	_, err = lw.Backup(r.at("backup"))
	r.must(err)
	size("backup", r.at("backup"))
	r.must(lw.Close())
}

// bundleOf writes a bundle of all of a world.
func (r *run) bundleOf(ctx context.Context, lw *local.World) error {
	f, err := os.Create(r.at("bundle"))
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it is only measured
	return lw.ExportBundle(ctx, io.Writer(f), local.BundleOptions{})
}
