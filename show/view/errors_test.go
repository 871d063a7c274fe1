package view_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"net/http"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/store"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/snapshot"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// TestEveryErrorThatADoorCanMeetHasAFault, or stands here with the reason why no door
// meets it.
func TestEveryErrorThatADoorCanMeetHasAFault(t *testing.T) {
	never := map[string]string{
		"world.InputError":            "it wraps one that has",
		"governance.SameError":        "it is an ErrSame",
		"local.StaleError":            "it is an ErrStale",
		"local.LineError":             "it wraps what is wrong with the line",
		"world.NotEventError":         "likewise",
		"manifest.PatchError":         "it wraps one that has",
		"governance.CapError":         "who proposes a candidate is told that it cannot be run, whatever is wrong with it",
		"governance.PolicyError":      "likewise",
		"manifest.NoAdapterError":     "it stands in a list of faults",
		"manifest.MissingEngineError": "it is part of world.ErrEngine, or says why a candidate cannot be run",
		"receipt.ErrLate":             "the world records such a receipt as late",
		"world.ErrNotKept":            "no door has a world of which nothing is kept: programs have them",
		"snapshot.ErrBadProof":        "verification reports it as what it has found",
	}
	rows := make(map[string]bool)
	ast.Inspect(parsed(t, "errors.go"), func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			rows[fmt.Sprintf("%s.%s", s.X, s.Sel)] = true
		}
		return true
	})
	for _, dir := range []string{"../../world", "../../world/local", "../../governance", "../../receipt", "../../snapshot", "../../manifest", "../../journal", "../../journal/store"} {
		for _, name := range exportedErrors(t, dir) {
			switch why, exempt := never[name]; {
			case exempt:
				require.False(t, rows[name], "%s has a fault, and is said to need none: %s", name, why)
			default:
				require.True(t, rows[name], "%s has no fault in errors.go: say what it comes to", name)
			}
		}
	}
}

// exportedErrors returns the sentinels and the types of errors of a package, with its
// name before them.
func exportedErrors(t *testing.T, dir string) (names []string) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f := parsed(t, file)
		for _, d := range f.Decls {
			for _, name := range errorsIn(d) {
				names = append(names, f.Name.Name+"."+name)
			}
		}
	}
	require.NotEmpty(t, names, dir)
	return names
}

// errorsIn returns what a declaration has of either.
func errorsIn(d ast.Decl) (names []string) {
	switch d := d.(type) {
	case *ast.GenDecl:
		for _, s := range d.Specs {
			if s, ok := s.(*ast.ValueSpec); ok && d.Tok == token.VAR && strings.HasPrefix(s.Names[0].Name, "Err") {
				names = append(names, s.Names[0].Name)
			}
		}
	case *ast.FuncDecl:
		if d.Recv == nil || d.Name.Name != "Error" {
			return nil
		}
		of := d.Recv.List[0].Type
		if star, ok := of.(*ast.StarExpr); ok {
			of = star.X
		}
		if name := of.(*ast.Ident).Name; ast.IsExported(name) {
			names = append(names, name)
		}
	}
	return names
}

func parsed(t *testing.T, file string) *ast.File {
	f, err := parser.ParseFile(token.NewFileSet(), path.Clean(file), nil, 0)
	require.NoError(t, err)
	return f
}

// TestFirstFaultCounts where an error is several: what keeps the world from going on
// comes before what is wrong with a request.
func TestFirstFaultCounts(t *testing.T) {
	for _, x := range []struct {
		err    error
		code   string
		status int
		exit   int
	}{
		{errors.New("anything"), "", 0, view.ExitFailed},
		{&world.InputError{Err: world.ErrNoReason}, "no-reason", http.StatusUnprocessableEntity, view.ExitUsage},
		{fmt.Errorf("world: %w", governance.ErrNotShadowed), "not-shadowed", http.StatusForbidden, view.ExitDenied},
		{&governance.SameError{N: 3}, "proposed-already", http.StatusConflict, view.ExitConflict},
		{errors.Join(world.ErrSchema, store.ErrClosed), "ended", http.StatusServiceUnavailable, view.ExitFailed},
		{errors.Join(journal.ErrFenced, context.Canceled), "deadline", http.StatusServiceUnavailable, view.ExitInterrupted},
		{fmt.Errorf("%w: %w", host.ErrBadReceipt, receipt.ErrWrongAttempt), "bad-receipt", http.StatusUnprocessableEntity, view.ExitFailed},
		{journal.ErrRedacted, "redacted", http.StatusGone, view.ExitFailed},
		{journal.ErrNotFound, "", 0, view.ExitFailed},
		{&view.MomentError{Name: "t9", Rule: "tick 9 is still to come", Err: journal.ErrNotFound}, "", 0, view.ExitUsage},
		{&view.MomentError{Name: "noon", Err: snapshot.ErrNoSnapshot}, "not-found", http.StatusNotFound, view.ExitUsage},
		{&fs.PathError{Op: "open", Path: "a", Err: fs.ErrNotExist}, "", 0, view.ExitUsage},
		{fmt.Errorf("%w: %w", local.ErrNoRecording, local.ErrNoWorld), "no-recording", http.StatusConflict, view.ExitFailed},
		{fmt.Errorf("%w: it needs kernel 9", world.ErrEngine), "no-engine", http.StatusConflict, view.ExitFailed},
		{fmt.Errorf("local: spool: %w", syscall.EMFILE), "no-descriptors", http.StatusServiceUnavailable, view.ExitFailed},
		{&store.DamageError{What: "record 3"}, "unreadable", http.StatusServiceUnavailable, view.ExitVerify},
		{&world.SideEffectsError{}, "side-effects", http.StatusConflict, view.ExitDenied},
	} {
		f := view.FaultOf(x.err)
		require.Equal(t, []any{x.code, x.status, x.exit}, []any{f.Code, f.Status, f.Exit}, "%v", x.err)
	}
}
