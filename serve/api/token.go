package api

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/internal/file"
	"github.com/worldkernel/worldkernel/world"
)

// Scope is a right of a token's bearer. No scope implies another.
type Scope string

// The scopes. The table of routes says which one each takes.
const (
	ScopeRead    Scope = "read"    // look at everything
	ScopeSubmit  Scope = "submit"  // submit events
	ScopeApprove Scope = "approve" // decide about intents and proposals
	ScopeAdmin   Scope = "admin"   // step, snapshots, rollbacks and forks, propose and apply rules
	ScopeWork    Scope = "work"    // perform effects
)

// scopeOpen lets everybody in, without a token.
const scopeOpen Scope = ""

// Scopes returns all scopes.
func Scopes() []Scope { return []Scope{ScopeRead, ScopeSubmit, ScopeApprove, ScopeAdmin, ScopeWork} }

// scopeAny lets in whoever shows a token that is known.
const scopeAny Scope = "any"

// allWorlds stands for every world in a token's line.
const allWorlds = "*"

// aheadWord begins the word of a token's line that says how far ahead it may submit.
const aheadWord = "ahead="

// tokenPrefix begins every token, so that one that leaked is recognized.
const tokenPrefix = "wk_"

const (
	tokenBytes        = 32      // of randomness
	maxTokens         = 1000    // lines
	maxTokenFileBytes = 1 << 20 // of a token file
)

// ErrExposedTokens says that others than its owner can use a token file.
var ErrExposedTokens = file.ErrExposed

// token is one line of a token file.
type token struct {
	name   string // the actor in the journal
	scopes []Scope
	hash   [sha256.Size]byte
	worlds []string      // ids; nil: all
	ahead  world.Horizon // how far ahead it may submit, where it says so
}

// horizon returns how far ahead the token may submit; nil: as far as the clock goes.
func (t *token) horizon() *world.Horizon {
	if !t.ahead.Said && t.has(ScopeAdmin) {
		return nil
	}
	return &t.ahead
}

func (t *token) has(s Scope) bool { return s == scopeAny || slices.Contains(t.scopes, s) }

// holders returns the names of the tokens that have a scope for a world.
func (t *Tokens) holders(s Scope, world string) (names []string) {
	for i := range t.list {
		if x := &t.list[i]; x.has(s) && x.sees(world) {
			names = append(names, x.name)
		}
	}
	return names
}

// sees reports whether the token is for a world.
func (t *token) sees(world string) bool { return t.worlds == nil || slices.Contains(t.worlds, world) }

// Tokens are the tokens that a server takes. The zero value takes none. A file of
// them has a line for each:
//
//	NAME SCOPES SHA256 WORLDS [ahead=TICKS or ahead=DURATION]
//
// NAME is the actor that the journal names. SCOPES are separated by commas. SHA256
// is that of the token, in hex, so that the file betrays none. WORLDS are ids of
// worlds, separated by commas, or * for all. ahead= says how far ahead
// of now events may be submitted for; see world.Horizon. Empty lines and lines that begin
// with # say nothing.
type Tokens struct{ list []token }

// NewToken returns a new random token and the SHA-256 that stands for it in a
// token file.
func NewToken() (secret, hash string) {
	random := make([]byte, tokenBytes)
	_, _ = rand.Read(random) // it never errs
	secret = tokenPrefix + base64.RawURLEncoding.EncodeToString(random)
	sum := sha256.Sum256([]byte(secret))
	return secret, hex.EncodeToString(sum[:])
}

// ReadTokens reads a token file, which must be its owner's alone: ErrExposedTokens
// otherwise.
func ReadTokens(path string) (*Tokens, error) {
	data, err := file.ReadSecret(path, maxTokenFileBytes)
	if err != nil {
		return nil, fmt.Errorf("api: tokens: %w", err)
	}
	t, err := ParseTokens(data)
	if err != nil {
		return nil, fmt.Errorf("%w; in %s", err, path)
	}
	return t, nil
}

// ParseTokens parses the content of a token file. The error names the line.
func ParseTokens(data []byte) (*Tokens, error) {
	t := new(Tokens)
	lines := bufio.NewScanner(bytes.NewReader(data))
	n := 0
	for lines.Scan() {
		n++
		text := strings.TrimSpace(lines.Text())
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		x, err := parseToken(text)
		if err == nil {
			err = t.add(x)
		}
		if err != nil {
			return nil, fmt.Errorf("api: tokens: line %d: %w", n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("api: tokens: line %d: %w", n+1, err)
	}
	return t, nil
}

func (t *Tokens) add(x token) error {
	for _, other := range t.list {
		switch {
		case other.name == x.name:
			return fmt.Errorf("the name %q is there twice", x.name)
		case other.hash == x.hash:
			return fmt.Errorf("%s has the token of %s", x.name, other.name)
		}
	}
	if len(t.list) == maxTokens {
		return fmt.Errorf("more than %d tokens", maxTokens)
	}
	t.list = append(t.list, x)
	return nil
}

func parseToken(text string) (token, error) {
	const fields = 4
	words := strings.Fields(text)
	if len(words) != fields && len(words) != fields+1 {
		return token{}, fmt.Errorf("%d words, want NAME SCOPES SHA256 WORLDS, and where wanted %sTICKS", len(words), aheadWord)
	}
	x := token{name: words[0]}
	if len(words) > fields {
		said, is := strings.CutPrefix(words[fields], aheadWord)
		if !is {
			return token{}, fmt.Errorf("there is no use for %q: after WORLDS comes %sTICKS or nothing", words[fields], aheadWord)
		}
		var err error
		if x.ahead, err = world.ParseHorizon(said); err != nil {
			return token{}, err
		}
	}
	if err := world.CheckActor(x.name); err != nil {
		return token{}, fmt.Errorf("the name: %w", err)
	}
	for name := range strings.SplitSeq(words[1], ",") {
		if !slices.Contains(Scopes(), Scope(name)) {
			return token{}, fmt.Errorf("%q is not a scope: they are %s", name, strings.Trim(fmt.Sprint(Scopes()), "[]"))
		}
		x.scopes = append(x.scopes, Scope(name))
	}
	hash, err := hex.DecodeString(words[2])
	if err != nil || len(hash) != len(x.hash) {
		return token{}, fmt.Errorf("want the SHA-256 of the token, %d hex digits", hex.EncodedLen(len(x.hash)))
	}
	x.hash = [sha256.Size]byte(hash)
	if words[3] == allWorlds {
		return x, nil
	}
	for id := range strings.SplitSeq(words[3], ",") {
		if id == "" || id == allWorlds {
			return token{}, fmt.Errorf("%q does not say which worlds: want ids, or * for all", words[3])
		}
		x.worlds = append(x.worlds, id)
	}
	return x, nil
}

// with returns the token with a hash, nil where there is none. It takes as long whichever it is.
func (t *Tokens) with(hash [sha256.Size]byte) *token {
	if t == nil {
		return nil
	}
	at := -1
	for i := range t.list {
		same := subtle.ConstantTimeCompare(hash[:], t.list[i].hash[:])
		at = subtle.ConstantTimeSelect(same, i, at)
	}
	if at < 0 {
		return nil
	}
	return &t.list[at]
}

// tokenWith returns the token with a hash, of a session or not; nil: none is taken.
func (s *Server) tokenWith(hash [sha256.Size]byte) *token {
	if t := s.tokens.Load().with(hash); t != nil {
		return t
	}
	return s.cfg.Sessions.with(hash)
}

// keeps reports whether the token of a call that was let in is taken still, and good for
// the same.
func (s *Server) keeps(c *call) bool {
	t := s.tokenWith(c.token.hash)
	return t != nil && t.sees(c.world.id) && (t.has(c.route.scope) || t.has(c.route.or))
}

// TokenLine is what a line of a token file says, without the token.
type TokenLine struct {
	Name   string   `json:"name"`
	Scopes []Scope  `json:"scopes"`
	Worlds []string `json:"worlds"`          // ids; nil: all
	Ahead  string   `json:"ahead,omitempty"` // ticks or a duration; empty: nothing is said
}

// line returns what a line says of the token.
func (t *token) line() TokenLine {
	return TokenLine{Name: t.name, Scopes: t.scopes, Worlds: t.worlds, Ahead: t.ahead.String()}
}

// Lines returns the lines of the token file, in their order. The slices must not be changed.
func (t *Tokens) Lines() []TokenLine {
	lines := make([]TokenLine, len(t.list))
	for i := range t.list {
		lines[i] = t.list[i].line()
	}
	return lines
}
