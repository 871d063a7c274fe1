package reducer

import (
	"fmt"

	"github.com/worldkernel/worldkernel/manifest"
)

// Engine runs the code of reducers, in the versions that a program carries. The same code on the
// same input gives the same output and the same gas under one version. An Engine is safe for
// concurrent use. Package reducer/engines has those that there are.
type Engine interface {
	// Versions returns the supported versions, oldest first.
	Versions() []string
	// Compile parses and checks code for one of Versions. The error is a *SyntaxError, the first
	// there is, or says that the version is none of them.
	Compile(version string, code Code) (Program, error)
}

// Program is compiled code. It is immutable and safe for concurrent use.
type Program interface {
	// Start returns a new instance, and what starting it took. It runs the top level of the code,
	// which has the gas, memory and value of one step, or those that a manifest gives a step by
	// default if they are more, within bounds; nil: none. The error has the position of what failed.
	Start(s Setting, bounds *Bounds) (Reducer, Used, error)
}

// Code is the text of a program.
type Code struct {
	File    string // the name that errors carry
	Source  []byte
	Modules map[string][]byte // by the names that load gives them
}

// Setting is what a manifest gives a program besides its code. The zero value gives
// nothing.
type Setting struct {
	Params  Data // ctx.params, a map
	Schemas Data // ctx.schemas, a map from kinds of effects
	Limits  manifest.ReducerLimits
}

// Used counts the gas and memory of a program's top level, also where it failed.
type Used struct {
	Gas    uint64
	Memory uint64 // bytes that it has filled at most, which the instance may go on holding
}

// SyntaxError is a syntax error in a program, with its place.
type SyntaxError struct {
	File         string
	Line, Column int // from 1
	Msg          string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Msg)
}

// Reader is an [Engine] that finds names in the text of code without running it. Of the code of
// other engines nothing is known before it runs. Its errors are *SyntaxErrors.
type Reader interface {
	Engine
	// Loads returns what a file loads, in its order.
	Loads(file string, source []byte) ([]Load, error)
	// Defined returns the names that a file defines and others can load, in order.
	Defined(file string, source []byte) ([]string, error)
	// Mentions returns the names that stand in a file, in its order, or in a variable of it that is
	// a text. It finds none that code puts together.
	Mentions(file string, source []byte) (*Mentions, error)
	// Options returns the arguments that a function of a file takes, but for the first ones,
	// without a value of their own; none where there is no such function, or it takes others, too.
	Options(file string, source []byte, function string) ([]Parameter, error)
	// ReadsParam reports whether a file may read a param of the manifest: it takes it from
	// ctx.params by its name, or hands ctx.params on to where that cannot be told.
	ReadsParam(file string, source []byte, name string) bool
}

// Load is one load statement of a file.
type Load struct {
	Module       string
	Line, Column int // from 1
}

// Mention is a text that stands in a file.
type Mention struct {
	Text         string
	Line, Column int // from 1
}

// Option is a named argument of a call.
type Option struct {
	Mention           // its name
	Texts   []Mention // that are its value, or the items of its value
	Value   any       // see Parameter
	At      Mention   // where it stands, without a text
}

// Call is a place of a file where a function is called that a module has.
type Call struct {
	Module, Function string
	Options          []Option // that are named there
	Params           bool     // ctx.params are options, too
}

// Mentions are the texts of a file that name what a manifest declares.
type Mentions struct {
	Events  []Mention // that are emitted
	Effects []Mention // that are asked for: their kinds
	Calls   []Call
	Loaded  []Loaded
	Slips   []Slip
}

// Slip is a misspelled attribute of ctx, with the likely correct name.
type Slip struct {
	Mention
	Meant string
}

// Loaded is a name that a file takes from a module.
type Loaded struct {
	Mention
	Module string
}

// Parameter is an argument of a function that has a value of its own. A value is built of
// nil, bool, int64, *big.Int, float64, string, []any and map[string]any, whose fields nobody
// looks at, and of Computed.
type Parameter struct {
	Name    string
	Default any
}

// Computed is a value that code puts together.
type Computed struct{}
