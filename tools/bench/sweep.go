package main

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/memory"
)

// sweepBench is the size of `bench sweep`.
type sweepBench struct {
	agents, ticks int
	sizes         []int
	python        string
	scope
}

const sweepText = `A model of agents in memory, beside a plain loop and SimPy.

Boltzmann's wealth: every agent begins with one coin, and each tick every agent that
has one gives one to another at random. A tick is an event that goes to each agent,
a coin an event to one: so an agent-step is one step of one cell, and there are up to
two of them for each agent and tick. Agents times ticks a second are shown as well,
which is what other tools count.

The worlds keep nothing, as those of an experiment: see package world/memory. All
is measured by CPU time, with the garbage collection, and without the making of the
agents. Two cores are two worlds at once, and as fast as one of them costs more than
one alone. The plain loop is the same model in Go without a kernel, with an array
and nothing else; SimPy has a process for each agent, in one Python.`

func newSweepCommand(p *program) *cobra.Command {
	var b sweepBench
	cmd, f := b.command(p, "sweep", sweepText, "  bench sweep\n  bench sweep --sizes 1000,100000 --rounds 1", 3, b.each(b.round))
	f.IntVar(&b.agents, "agents", 10_000, "how many agents")
	f.IntVar(&b.ticks, "ticks", 100, "how many ticks they are run for")
	f.IntSliceVar(&b.sizes, "sizes", []int{1_000, 10_000, 100_000, 1_000_000}, "how many agents where the cost an agent-step is compared; ticks are as many as make the steps as many")
	b.profile(f)
	f.StringVar(&b.python, "python", "", "the `PROGRAM` that has SimPy; the first that has it of python3 and /usr/bin/python3 if not given")
	return cmd
}

func (b *sweepBench) round(ctx context.Context, r *run) {
	loop := b.plainLoop()
	r.add("plain loop", "agent ticks/s", "", loop)
	for _, engine := range []struct{ name, reach string }{
		{manifest.EngineGo, ">= 1500000"}, {manifest.EngineStarlark, ">= 200000"},
	} {
		one := b.wealth(ctx, r, engine.name, 1, b.agents, b.ticks)
		r.add(engine.name, "agent-steps/s", engine.reach, one.steps/one.CPU.Seconds())
		r.add(engine.name+" in ticks", "agent ticks/s", "", one.agentTicks/one.CPU.Seconds())
		r.add(engine.name+" allocations", "objects/agent-step", "", float64(one.Allocs)/one.steps)
		r.add(engine.name+" / plain loop", "ratio", "", one.agentTicks/one.CPU.Seconds()/loop)
		two := b.wealth(ctx, r, engine.name, 2, b.agents, b.ticks)
		r.add(engine.name+" on two cores / on one", "ratio", ">= 1.8", 2*one.CPU.Seconds()/one.steps/(two.CPU.Seconds()/two.steps))
		b.flat(ctx, r, engine.name)
	}
	if err := b.simpy(ctx, r, loop); err != nil {
		r.say("simpy", err.Error())
	}
}

// flat compares what an agent-step costs in worlds of several sizes.
func (b *sweepBench) flat(ctx context.Context, r *run, engine string) {
	least, most := 0.0, 0.0
	for _, n := range b.sizes {
		m := b.wealth(ctx, r, engine, 1, n, max(1, b.agents*b.ticks/n))
		cost := float64(m.CPU.Nanoseconds()) / m.steps
		r.add(fmt.Sprintf("%s with %d agents", engine, n), "ns/agent-step", "", cost)
		if least == 0 || cost < least {
			least = cost
		}
		most = max(most, cost)
	}
	r.add(engine+", dearest / cheapest size", "ratio", "<= 1.15", most/least)
}

// walked is what so many worlds at once cost, but for their making.
type walked struct {
	measured
	steps, agentTicks float64
}

// wealth runs worlds at once, each on a core of its own.
func (b *sweepBench) wealth(ctx context.Context, r *run, engine string, worlds, agents, ticks int) walked {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(worlds))
	all := make([]*memory.World, worlds)
	before := uint64(0)
	for i := range all {
		all[i] = r.wealthWorld(ctx, engine, agents, uint64(i))
		before += stepsOf(all[i])
	}
	errs := make([]error, worlds)
	m := walked{agentTicks: float64(worlds * agents * ticks)}
	m.measured = b.measurePart(r, fmt.Sprintf("%s-%d-%d", engine, worlds, agents), func() {
		var running sync.WaitGroup
		for i, w := range all {
			running.Go(func() { errs[i] = tick(ctx, w, ticks) })
		}
		running.Wait()
	})
	r.must(errors.Join(errs...))
	after := uint64(0)
	for _, w := range all {
		after += stepsOf(w)
		r.must(w.Close())
	}
	m.steps = float64(after - before)
	m.CPU = max(m.CPU, time.Microsecond) // else what is over at once has no rate
	return m
}

func tick(ctx context.Context, w *memory.World, ticks int) error {
	for range ticks {
		if _, err := w.Submit(ctx, world.Submission{Name: "tick"}); err != nil {
			return err
		}
		if err := w.Step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func stepsOf(w *memory.World) (n uint64) {
	for _, c := range w.Cells() {
		n += c.N
	}
	return n
}

// purse is an agent's state.
type purse struct {
	Coins uint64 `cbor:"coins"`
}

// give is the agent among so many, in Go: wealthStarlark is the same.
func give(agents int) func(ctx *reducer.Context, p purse, e reducer.Event) (purse, error) {
	return func(ctx *reducer.Context, p purse, e reducer.Event) (purse, error) {
		switch {
		case e.Name == "coin":
			p.Coins++
		case p.Coins > 0:
			p.Coins--
			ctx.EmitTo("coin", nil, strconv.FormatUint(ctx.Random(uint64(agents)), 10))
		}
		return p, nil
	}
}

const wealthStarlark = `def reduce(ctx, state, event):
    coins = state["coins"] if state else 0
    if event.name == "coin":
        return {"coins": coins + 1}
    if coins > 0:
        ctx.emit("coin", key = str(ctx.random(ctx.params["n"])))
        coins -= 1
    return {"coins": coins}
`

// wealthWorld makes a world whose agents have a coin each.
func (r *run) wealthWorld(ctx context.Context, engine string, agents int, seed uint64) *memory.World {
	params, err := canon.Marshal(map[string]any{"n": agents})
	r.must(err)
	source := []byte(wealthStarlark)
	agent := manifest.Reducer{Engine: engine, Params: manifest.Data(params)}
	contents := make(map[manifest.Hash][]byte)
	if engine == manifest.EngineGo {
		agent.Name, agent.Version = "wealth", "1"
	} else {
		agent.Source, agent.File = canon.Sum(source), "agent.star"
		contents[agent.Source] = source
	}
	m := manifest.Manifest{
		World: "wealth", Version: 1, Reducers: map[string]manifest.Reducer{"agent": agent},
		Events: map[string]manifest.Event{"tick": {}, "coin": {}},
		Routing: []manifest.Route{
			{Event: "tick", Reducer: "agent", Each: true},
			{Event: "coin", Reducer: "agent", Key: "'nobody'"}, // emits name the cell
		},
		Limits: manifest.Limits{EventsPerTick: uint64(4*agents + 1000)},
	}
	w, err := memory.New(&m, contents, memory.Options{
		Seed: &seed, Reducers: reducer.Registry{"wealth@1": reducer.Typed(1, give(agents))},
	})
	r.must(err)
	for i := range agents {
		_, err := w.Accept(ctx, world.Submission{Name: "coin", To: &reducer.Cell{Reducer: "agent", Key: strconv.Itoa(i)}})
		r.must(err)
	}
	r.must(w.Run(ctx))
	r.must(tick(ctx, w, 1)) // the first finds out who they are
	return w
}

// plainLoop returns how many agent ticks a second the model takes without a kernel.
func (b *sweepBench) plainLoop() float64 {
	const repeat = 20 // it is over too soon to be measured
	rng := rand.New(rand.NewPCG(1, 2))
	coins := make([]uint64, b.agents)
	for i := range coins {
		coins[i] = 1
	}
	m := measure(func() {
		for range repeat * b.ticks {
			for i := range coins {
				if coins[i] > 0 {
					coins[i]--
					coins[rng.IntN(len(coins))]++
				}
			}
		}
	})
	return float64(repeat*b.ticks*b.agents) / max(m.CPU, time.Microsecond).Seconds()
}

//go:embed sweep_simpy.py
var sweepSimpy string

// simpy adds what SimPy comes to.
func (b *sweepBench) simpy(ctx context.Context, r *run, loop float64) error {
	python, err := b.pythonWithSimpy(ctx)
	if err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, python, "-c", sweepSimpy, strconv.Itoa(b.agents), strconv.Itoa(b.ticks)).Output()
	if err != nil {
		return fmt.Errorf("%s: %w", python, err)
	}
	var got struct {
		Version string
		Seconds float64
	}
	if err := json.Unmarshal(out, &got); err != nil {
		return err
	}
	rate := float64(b.agents*b.ticks) / got.Seconds
	r.add("SimPy "+got.Version, "agent ticks/s", "", rate)
	r.add("SimPy / plain loop", "ratio", "", rate/loop)
	return nil
}

func (b *sweepBench) pythonWithSimpy(ctx context.Context) (string, error) {
	for python := range strings.SplitSeq(cmp.Or(b.python, "python3 /usr/bin/python3"), " ") {
		ctx, stop := context.WithTimeout(ctx, time.Minute)
		err := exec.CommandContext(ctx, python, "-c", "try: import simpy\nexcept ImportError: import SimPy.Simulation").Run()
		stop()
		if err == nil {
			return python, nil
		}
	}
	return "", errors.New("there is none: apt-get install python3-simpy, or name a program that has it with --python")
}
