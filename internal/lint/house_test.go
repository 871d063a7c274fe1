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
	floors    [][]string // from the bottom up; "x/..." stands for all below x
	pure      int        // floors below this index are pure
	funcLines int        // lines of a function's body, like funlen counts
	fileLines int
}

// ours is the house of architecture.md.
var ours = house{
	floors: [][]string{
		{"internal/canon", "internal/chunk", "internal/schema"}, // 0
		{"receipt", "manifest", "snapshot", "checkpoint"},       // 1
		{"reducer"}, // between 1 and 2: what engines implement
		{"reducer/star", "reducer/kit", "reducer/recorder", "governance", "journal"}, // 2
		{"world"},                // 3
		{"internal/file"},        // between 3 and 4: not pure, and above nothing
		{"internal/testrace"},    // likewise: which tests the race detector looks on
		{"internal/fault"},       // likewise: the faults that simulations strike with
		{"internal/attack"},      // likewise: what attacks share, for tests
		{"internal/recording"},   // likewise: where the recordings of tests are
		{"internal/sshkey"},      // likewise: the key files of approvers
		{"journal/pglog/pgtest"}, // likewise: a PostgreSQL for tests
		{"journal/logtest"},      // likewise: what tests of logs share
		{"journal/store", "journal/pglog", "journal/bundle", "journal/columns", "world/verify", "world/source", "world/export", "host"}, // 4
		{"world/measure"},                  // between 4 and 5: reads its documents as world/source does
		{"internal/inlog"},                 // likewise: where tests have worlds lie
		{"internal/testlog"},               // likewise: worlds of tests on PostgreSQL
		{"host/..."},                       // 4, heavy adapters: host does not know them
		{"world/memory"},                   // between 4 and 5: worlds without a disk
		{"world/local", "world/worldtest"}, // 5
		{"world/shared"},                   // between 5 and 6: worlds in a store
		{"world/chat"},                     // between 5 and 6: worlds of recorded runs
		{"world/view"},                     // likewise: what is shown of a world
		{"world/scenario"},                 // likewise: tries what worlds do
		{"experiment"},                     // likewise: one world many times
		{"world/notify"},                   // likewise: who is told of what waits
		{"world/api"},                      // likewise: worlds over HTTP
		{"serve/gateway"},                  // likewise: what agents talk to in the place of their model's provider
		{"world/ui"},                       // likewise: the page that people look at them with
		{"world/worker"},                   // likewise: who performs effects for them elsewhere
		{"world/node"},                     // likewise: who owns worlds of a store together with others
		{"examples"},                       // embedded worlds, for worldctl only
		{"worldctl/owner"},                 // below it: what is typed beside a process that owns a world
		{"worldctl"},                       // 7
		{"cmd/worldctl", "examples/go", "internal/lint"}, // above it: what is linked into one program
	},
	pure:      5,
	funcLines: 60,
	fileLines: 450,
}

// floor returns the index of a package's floor.
func (h *house) floor(path string) (int, bool) {
	for i, rooms := range h.floors {
		for _, room := range rooms {
			below, all := strings.CutSuffix(room, "...")
			if path == room || all && strings.HasPrefix(path, below) {
				return i, true
			}
		}
	}
	return 0, false
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
		if floor, ok := h.floor(r.path); ok && floor < h.pure {
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
