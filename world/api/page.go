package api

import (
	"net/http"
	"strings"
)

// pagePath begins the paths of the page, which anybody may have: it knows nothing of a
// world before somebody shows a token.
const pagePath = "/ui/"

// pageRequests is how many times as many requests without a token are answered for the
// page as for all else: its parts come one by one, from memory.
const pageRequests = 5

// ofPage returns the limits of who asks for the page.
func (l Limits) ofPage() *Limits {
	l.Strangers.All *= pageRequests
	l.Strangers.Address *= pageRequests
	return &l
}

// isPage reports whether a path is one of the page, or leads there.
func (s *Server) isPage(path string) bool {
	return s.cfg.Page != nil && (path == "/" || strings.HasPrefix(path+"/", pagePath))
}

// showPage answers with a part of the page.
func (s *Server) showPage(c *call) error {
	if err := s.browsers.admit(c.Request); err != nil {
		return err
	}
	c.deadline(s.cfg.Limits.Flush)
	c.listen(now().Add(s.cfg.Limits.BodyGrace)) // to a body that nobody wants
	if !strings.HasPrefix(c.URL.Path, pagePath) {
		http.Redirect(c.out, c.Request, pagePath, http.StatusSeeOther)
		return nil
	}
	http.StripPrefix(strings.TrimSuffix(pagePath, "/"), s.cfg.Page).ServeHTTP(c.out, c.Request)
	return nil
}
