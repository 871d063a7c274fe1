package star_test

import (
	"cmp"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/manifest"
)

// maxCPU is what a step may take at the default limit of gas.
const maxCPU = 200 * time.Millisecond

var defaultGas = manifest.ReducerLimits{}.WithDefaults().Gas

func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestSearchForExpensivePrograms measures; make gas runs it. It is no part of the
// tests, which do not depend on how fast a machine is.
func TestSearchForExpensivePrograms(t *testing.T) {
	only, ok := os.LookupEnv("WORLDKERNEL_GAS")
	if !ok {
		t.Skip("make gas runs it")
	}
	type found struct {
		name string
		took time.Duration
		gas  uint64
	}
	measure := func(name, source string, gas uint64) found {
		if gas == defaultGas {
			runtime.GC()
		}
		before := cpu()
		out, err := runFor(t, source, gas)
		x := found{name: name, took: cpu() - before}
		if out != nil {
			x.gas = out.Gas
		}
		if x.took > maxCPU {
			t.Logf("%s %s", x.took, name)
		}
		_ = err
		return x
	}
	first := defaultGas / 20
	var all []found
	for name, source := range searched() {
		if strings.Contains(name, only) {
			all = append(all, measure(name, source, first))
		}
	}
	slices.SortFunc(all, func(a, b found) int { return cmp.Compare(b.took, a.took) })
	sources, over := searched(), 0
	var worst []found
	for _, x := range all[:min(40, len(all))] {
		best := measure(x.name, sources[x.name], defaultGas)
		for range 2 {
			again := measure(x.name, sources[x.name], defaultGas)
			best.took = min(best.took, again.took)
		}
		worst = append(worst, best)
		if best.took > maxCPU {
			over++
		}
	}
	slices.SortFunc(worst, func(a, b found) int { return cmp.Compare(b.took, a.took) })
	for _, x := range worst[:min(40, len(worst))] {
		t.Logf("%8s %10d gas  %s", x.took.Round(time.Millisecond), x.gas, x.name)
	}
	t.Logf("%d programs, %d over %s", len(all), over, maxCPU)
	require.Zero(t, over)
}
