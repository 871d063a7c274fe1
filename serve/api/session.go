package api

import (
	"crypto/sha256"
	"net/http"
	"slices"
	"sync"
	"time"
)

// The lives of what lets a person in who looks at worlds in a browser.
const (
	CodeLife    = time.Minute   // of a code, which is good once
	SessionLife = 8 * time.Hour // of the token that it is exchanged for
)

// maxSessions is how many codes, and how many tokens of theirs, are taken at once: the
// oldest goes then.
const maxSessions = 64

// Sessions let people in by codes, which are good once and for a minute, so that no token
// has to be where others can read it: in an argument, a log or the history of a browser.
// A code is exchanged for a token of a working day. The zero value lets nobody in. It is
// safe for concurrent use.
type Sessions struct {
	mu     sync.Mutex
	codes  []session
	tokens []session

	clock func() time.Time // nil: the machine's
}

// session is a code, or a token that one was exchanged for.
type session struct {
	token
	ends time.Time
}

// Invite returns a code for whoever is to have the rights of a line of a token file. The
// error says what is wrong with the line.
func (s *Sessions) Invite(line TokenLine) (code string, err error) {
	code, hash := NewToken()
	t, err := parseToken(line.Text(hash))
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.codes = s.added(s.codes, session{t, s.now().Add(CodeLife)})
	return code, nil
}

// exchange returns the token for a code, and until when it is taken; "": it is none.
func (s *Sessions) exchange(code string) (secret string, to session) {
	if s == nil {
		return "", to
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.codes = s.living(s.codes)
	sum := sha256.Sum256([]byte(code))
	at := slices.IndexFunc(s.codes, func(c session) bool { return c.hash == sum })
	if at < 0 {
		return "", to
	}
	to = s.codes[at]
	s.codes = slices.Delete(s.codes, at, at+1)
	secret, _ = NewToken()
	to.hash, to.ends = sha256.Sum256([]byte(secret)), s.now().Add(SessionLife)
	s.tokens = s.added(s.tokens, to)
	return secret, to
}

// with returns the token with a hash, nil where there is none.
func (s *Sessions) with(hash [sha256.Size]byte) *token {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens = s.living(s.tokens)
	at := slices.IndexFunc(s.tokens, func(x session) bool { return x.hash == hash })
	if at < 0 {
		return nil
	}
	found := s.tokens[at].token
	return &found
}

// endSession takes the token with a hash no more, and reports whether there was one.
func (s *Sessions) endSession(hash [sha256.Size]byte) bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens = s.living(s.tokens)
	were := len(s.tokens)
	s.tokens = slices.DeleteFunc(s.tokens, func(x session) bool { return x.hash == hash })
	return len(s.tokens) < were
}

// added returns the sessions that go on, with another one.
func (s *Sessions) added(to []session, x session) []session {
	to = append(s.living(to), x)
	return to[max(0, len(to)-maxSessions):]
}

// living returns the sessions that have not ended.
func (s *Sessions) living(of []session) []session {
	at := s.now()
	return slices.DeleteFunc(of, func(x session) bool { return !at.Before(x.ends) })
}

func (s *Sessions) now() time.Time {
	if s.clock != nil {
		return s.clock()
	}
	return now()
}

// CodeRequest is the body of an exchange.
type CodeRequest struct {
	Code string `json:"code"`
}

// Session is what a code was exchanged for.
type Session struct {
	Token   string    `json:"token"` // told once
	Name    string    `json:"name"`  // the actor in journals
	Scopes  []Scope   `json:"scopes"`
	Worlds  []string  `json:"worlds"` // ids; nil: all
	Expires time.Time `json:"expires"`

	// Dirs is where the worlds are, by their ids: codes are for people at this machine, whose
	// shells have to name them.
	Dirs map[string]string `json:"dirs"`
}

// openSession exchanges a code for a token.
func openSession(c *call) error {
	var body CodeRequest
	if err := c.decodeWithin(unhurried, &body); err != nil {
		return err
	}
	secret, to := c.server.cfg.Sessions.exchange(body.Code)
	if secret == "" {
		return failed(http.StatusUnauthorized, "unauthorized", "the code is not one that this server gave, or somebody has used it, or its minute is over")
	}
	dirs := make(map[string]string)
	for h := range c.server.worlds.each() {
		if to.sees(h.id) {
			dirs[h.id] = h.Local.Dir()
		}
	}
	return c.respond(http.StatusCreated, jsonType, Session{Token: secret, Name: to.name, Scopes: to.scopes, Worlds: to.worlds, Expires: to.ends.UTC(), Dirs: dirs})
}

// closeSession ends the session whose token is shown, and what it follows. One of a token
// file is not a session: whoever has the file takes it back.
func closeSession(c *call) error {
	if !c.server.cfg.Sessions.endSession(c.token.hash) {
		return notFound("the token is not one of a session: worldctl token revoke ends others")
	}
	c.out.WriteHeader(http.StatusNoContent)
	return nil
}
