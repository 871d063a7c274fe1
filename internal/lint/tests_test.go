package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A test that fails where the machine is busy says nothing of the product.
const (
	inTime   = "%s: a busy machine is later: wait for the event itself, and bound a hang by a minute; or say why nothing fails then in a comment on the line: // may be late: reason"
	measured = "%s of a time that was measured: it depends on what else the machine does; take the clock of testing/synctest, or count"
	found    = "recordings are found by internal/recording alone"
)

// hang is the least that a deadline of a test is to be.
const hang = time.Minute

var mayBeLate = regexp.MustCompile(`// may be late: \S`)

// checkTests looks at the tests of the room, which are not type-checked: names do.
func checkTests(r *room) {
	if len(r.GoFiles) == 0 {
		return
	}
	files, err := filepath.Glob(filepath.Join(filepath.Dir(r.GoFiles[0]), "*_test.go"))
	if err != nil {
		r.fault(token.NoPos, "%v", err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err == nil {
			var file *ast.File
			file, err = parser.ParseFile(r.Fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
			if err == nil {
				checkTest(r, file)
			}
		}
		if err != nil {
			r.fault(token.NoPos, "%v", err)
		}
	}
}

func checkTest(r *room, file *ast.File) {
	ownClock := false // of a bubble, in which nobody is late
	for _, spec := range file.Imports {
		ownClock = ownClock || spec.Path.Value == `"testing/synctest"`
	}
	late := make(map[int]bool) // lines on which something may be
	for _, group := range file.Comments {
		for _, c := range group.List {
			if mayBeLate.MatchString(c.Text) {
				late[r.Fset.Position(c.Pos()).Line] = true
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			checkRecording(r, n)
			if !ownClock && !late[r.Fset.Position(n.Pos()).Line] {
				checkDeadline(r, n)
			}
		case *ast.CommClause:
			if !ownClock && n.Comm != nil && !late[r.Fset.Position(n.Pos()).Line] {
				checkWait(r, n)
			}
		}
		return true
	})
}

func checkRecording(r *room, call *ast.CallExpr) {
	if r.path == "internal/recording" {
		return
	}
	for i, arg := range call.Args {
		text := literal(arg)
		if strings.Contains(text, "shared/"+"data") || text == "data" && i > 0 && literal(call.Args[i-1]) == "shared" {
			r.fault(arg.Pos(), found)
		}
	}
}

// deadlines are functions that give up after a time, by the argument that says after which.
var deadlines = map[string]int{
	"WithTimeout": 1, "WithTimeoutCause": 1, "Eventually": 2, "EventuallyWithT": 2,
	"SetDeadline": 0, "SetReadDeadline": 0, "SetWriteDeadline": 0,
}

// bounds compare.
var bounds = map[string]bool{
	"Less": true, "LessOrEqual": true, "Greater": true, "GreaterOrEqual": true, "InDelta": true, "WithinDuration": true,
}

func checkDeadline(r *room, call *ast.CallExpr) {
	name := called(call)
	if at, is := deadlines[name]; is && at < len(call.Args) {
		arg := call.Args[at]
		if add, is := arg.(*ast.CallExpr); is && called(add) == "Add" && len(add.Args) == 1 {
			arg = add.Args[0] // time.Now().Add
		}
		if d, known := duration(arg); known && d > 0 && d < hang {
			r.fault(call.Pos(), inTime, name)
		}
	}
	if bounds[name] && literalPackage(call) == "require" {
		for _, arg := range call.Args {
			if since, is := arg.(*ast.CallExpr); is && called(since) == "Since" {
				r.fault(call.Pos(), measured, name)
			}
		}
	}
}

// checkWait looks at a case of select in which a test fails when a time is over.
func checkWait(r *room, c *ast.CommClause) {
	after := false
	ast.Inspect(c.Comm, func(n ast.Node) bool {
		if call, is := n.(*ast.CallExpr); is && called(call) == "After" && len(call.Args) == 1 {
			d, known := duration(call.Args[0])
			after = known && d < hang
		}
		return true
	})
	for _, s := range c.Body {
		ast.Inspect(s, func(n ast.Node) bool {
			if call, is := n.(*ast.CallExpr); is && after {
				switch called(call) {
				case "Fatal", "Fatalf", "Error", "Errorf", "Fail", "FailNow":
					r.fault(c.Pos(), inTime, "After")
				}
			}
			return true
		})
	}
}

func called(call *ast.CallExpr) string {
	if s, is := call.Fun.(*ast.SelectorExpr); is {
		return s.Sel.Name
	}
	return ""
}

func literalPackage(call *ast.CallExpr) string {
	if s, is := call.Fun.(*ast.SelectorExpr); is {
		if id, is := s.X.(*ast.Ident); is {
			return id.Name
		}
	}
	return ""
}

func literal(e ast.Expr) string {
	if l, is := e.(*ast.BasicLit); is && l.Kind == token.STRING {
		text, err := strconv.Unquote(l.Value)
		if err == nil {
			return text
		}
	}
	return ""
}

// units are those of package time.
var units = map[string]time.Duration{
	"Nanosecond": time.Nanosecond, "Microsecond": time.Microsecond, "Millisecond": time.Millisecond,
	"Second": time.Second, "Minute": time.Minute, "Hour": time.Hour,
}

// duration returns what is written as a number of units, and whether it is.
func duration(e ast.Expr) (time.Duration, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		n, err := strconv.ParseInt(e.Value, 0, 64)
		return time.Duration(n), err == nil
	case *ast.SelectorExpr:
		d, is := units[e.Sel.Name]
		return d, is
	case *ast.BinaryExpr:
		x, is := duration(e.X)
		y, also := duration(e.Y)
		return x * y, is && also && e.Op == token.MUL
	default:
		return 0, false
	}
}
