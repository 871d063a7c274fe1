package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal/pglog/pgtest"
)

// TestMain is the program where a benchmark starts itself as a second process, or the
// one with the peers.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && (os.Args[1] == "submit" || os.Args[1] == "gateway"):
		main()
	case len(os.Args) > 1 && os.Args[1] == "-peer":
		standIn(os.Args[2])
	default:
		os.Exit(m.Run())
	}
}

// TestEveryBenchmarkMeasures runs each in small. They hold themselves to what must have
// come of the work.
func TestEveryBenchmarkMeasures(t *testing.T) {
	for _, line := range []string{
		"kernel --events 2000 --cells 10 --idle 100 --rounds 1",
		"effects --cells 1,3 --effects 4 --rounds 2",
		"snapshot --cells 100 --bytes 200000 --rounds 1",
		"moment --events 3000 --ahead 1000 --keys 10 --looks 3 --whole 1 --rounds 1",
		"shadow --events 200 --cells 10 --rounds 1",
		"verify --records 2000 --cells 10 --rounds 1",
		"sweep --agents 50 --ticks 3 --sizes 50,100 --rounds 1",
		"submit --clients 3 --tokens 2 --batch 5 --for 50ms --rounds 1",
		"gateway --calls 10 --agents 2 --turns 5 --rounds 1",
		"long --records 102000 --window 1000 --cells 10 --rounds 1",
	} {
		name, _, _ := strings.Cut(line, " ")
		t.Run(name, func(t *testing.T) { measures(t, name, line+" --dir "+t.TempDir()) })
	}
}

// TestPostgresIsMeasured is for itself: whoever runs a server could not enter the directory of a test.
func TestPostgresIsMeasured(t *testing.T) {
	pgtest.Shared(t) // or it is skipped
	measures(t, "postgres", "postgres --events 2000 --cells 10 --singles 20 --rounds 1")
}

func measures(t *testing.T, name, line string) {
	t.Helper()
	var out strings.Builder
	root := newRootCommand(&program{stdout: &out, stderr: io.Discard})
	root.SetArgs(append(strings.Fields(line), "-o", "json"))
	err := root.ExecuteContext(t.Context())
	withSQLite(t, err)
	require.NoError(t, err)
	var answer struct {
		Bench   string
		Figures []figure
	}
	require.NoError(t, json.Unmarshal([]byte(out.String()), &answer))
	require.Equal(t, name, answer.Bench)
	require.NotEmpty(t, answer.Figures)
}

// withSQLite skips a test for which SQLite, which is C, was not compiled: make nightly has it.
func withSQLite(t *testing.T, err error) {
	t.Helper()
	if err != nil && strings.Contains(err.Error(), "requires cgo") {
		t.Skip("SKIPPED: no SQLite beside it, which needs gcc and CGO_ENABLED=1")
	}
}

// TestTheFirstErrorEndsARun has one in the midst of a round.
func TestTheFirstErrorEndsARun(t *testing.T) {
	dir, wrong, deferred := t.TempDir(), errors.New("wrong"), false
	s := scope{rounds: 2, dir: dir, note: func(string, ...any) {}}
	_, err := s.measure(t.Context(), s.each(func(_ context.Context, r *run) {
		defer func() { deferred = true }()
		r.must(os.MkdirAll(r.at("left"), 0o755))
		r.must(wrong)
		t.Error("it went on")
	}))
	require.ErrorIs(t, err, wrong)
	require.True(t, deferred)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestFiguresAreATable(t *testing.T) {
	var out strings.Builder
	p := &program{stdout: &out, output: "table"}
	require.NoError(t, p.figures("kernel", []figure{median("open", "s", "<= 1", []float64{0.3, 0.1, 0.2}), {Name: "lost", Unit: "effects"}}))
	require.Equal(t, ""+
		"figure  median  least  most  unit     reach\n"+
		"open    0.2     0.1    0.3   s        <= 1\n"+
		"lost    0                    effects  \n", out.String())
	p.output = "xml"
	require.Error(t, p.figures("kernel", nil))
}
