package lint

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/packages"
)

// house is what the rules are checked against.
type house struct {
	floors    []floor  // from the ground up
	pure      []string // packages without I/O, clock and goroutine; "x/..." stands for all below x
	funcLines int      // lines of a function's body, like funlen counts
	fileLines int
}

// floor is one or more top folders, which do not know each other.
type floor struct {
	folders string // separated by spaces
	holds   string // in one sentence
}

// ours is the house of architecture.md.
var ours = house{
	floors: []floor{
		{"internal", "what no program of a user's needs"},
		{"receipt manifest snapshot checkpoint", "the vocabulary: plain data, its bytes and its checks"},
		{"reducer", "what a cell is, and the engines that run one"},
		{"governance", "who may do what: one effect, or a change of the rules"},
		{"journal", "what a record is, and where records are kept"},
		{"host", "performs effects"},
		{"world", "the kernel, and the doors of Go programs"},
		{"show", "what people and programs are shown, composed once"},
		{"serve lab examples", "worlds that others ask, worlds that are tried, worlds to begin with"},
		{"worldctl", "the command line; cmd and examples/go link it into programs"},
	},
	pure: []string{
		"internal/canon", "internal/chunk", "internal/schema", "receipt", "manifest", "snapshot", "checkpoint",
		"reducer/...", "governance", "journal", "world",
	},
	funcLines: 60,
	fileLines: 450,
}

// floorOf returns the index of a package's floor.
func (h *house) floorOf(path string) (int, bool) {
	if path == "" || path == "examples/go" || strings.HasPrefix(path, "cmd/") {
		return len(h.floors), true
	}
	top, _, _ := strings.Cut(path, "/")
	for i, f := range h.floors {
		if slices.Contains(strings.Fields(f.folders), top) {
			return i, true
		}
	}
	return 0, false
}

// isPure reports whether a package is one of those that do no I/O.
func (h *house) isPure(path string) bool {
	return slices.ContainsFunc(h.pure, func(room string) bool {
		below, all := strings.CutSuffix(room, "/...")
		return path == below || all && strings.HasPrefix(path, below+"/")
	})
}

// fault is a broken rule at a place.
type fault struct {
	pos     token.Position
	message string
}

func (f fault) String() string {
	return fmt.Sprintf("%s:%d: %s", f.pos.Filename, f.pos.Line, f.message)
}

// room is one package under inspection.
type room struct {
	*packages.Package
	path   string // within the module
	faults []fault
}

func (r *room) fault(at token.Pos, format string, args ...any) {
	r.faults = append(r.faults, fault{r.Fset.Position(at), fmt.Sprintf(format, args...)})
}

// inspect calls f with every node of the room and its parents, outermost first.
func (r *room) inspect(f func(n ast.Node, parents []ast.Node)) {
	for _, file := range r.Syntax {
		var parents []ast.Node
		ast.Inspect(file, func(n ast.Node) bool {
			if n == nil {
				parents = parents[:len(parents)-1]
				return true
			}
			f(n, parents)
			parents = append(parents, n)
			return true
		})
	}
}

// load type-checks all packages of the module at dir, without tests.
func load(t *testing.T, dir string) []*room {
	t.Helper()
	pkgs, err := packages.Load(&packages.Config{
		Dir: dir,
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
			packages.NeedTypes | packages.NeedTypesInfo | packages.NeedSyntax | packages.NeedModule,
	}, "./...")
	require.NoError(t, err)
	require.NotEmpty(t, pkgs)
	var rooms []*room
	for _, p := range pkgs {
		if len(p.Errors) > 0 {
			t.Errorf("%s does not type-check: %v", p.PkgPath, p.Errors[0])
		}
		if p.Module != nil {
			path := strings.TrimPrefix(strings.TrimPrefix(p.PkgPath, p.Module.Path), "/")
			rooms = append(rooms, &room{Package: p, path: path})
		}
	}
	return rooms
}

// check applies every rule to every room and returns the faults by place.
func (h *house) check(rooms []*room) []fault {
	var all []fault
	for _, r := range rooms {
		h.checkFloors(r)
		h.checkShape(r)
		checkTests(r)
		if h.isPure(r.path) {
			checkPurity(r)
		}
		all = append(all, r.faults...)
	}
	slices.SortFunc(all, func(a, b fault) int {
		return cmp.Or(strings.Compare(a.pos.Filename, b.pos.Filename), a.pos.Line-b.pos.Line)
	})
	return all
}

func TestTheHouseIsInOrder(t *testing.T) {
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	for _, f := range ours.check(load(t, root)) {
		if rel, err := filepath.Rel(root, f.pos.Filename); err == nil {
			f.pos.Filename = rel
		}
		t.Error(f)
	}
}
