package api

import (
	"net/http"
	"strings"
)

// pagePath begins the paths of the page, which anybody may have: it knows nothing of a
// world before somebody shows a token.
const pagePath = "/ui/"

// isPage reports whether a path is one of the page, or leads there.
func (s *Server) isPage(path string) bool {
	return s.cfg.Page != nil && (path == "/" || strings.HasPrefix(path+"/", pagePath))
}

// showPage answers with a part of the page. Parts come from memory, and a browser asks for
// dozens at once: no rate bounds them, but how many may be connected.
func (s *Server) showPage(c *call) error {
	c.deadline(s.cfg.Limits.Flush)
	c.listen(now().Add(s.cfg.Limits.BodyGrace)) // to a body that nobody wants
	if !strings.HasPrefix(c.URL.Path, pagePath) {
		http.Redirect(c.out, c.Request, pagePath, http.StatusSeeOther)
		return nil
	}
	http.StripPrefix(strings.TrimSuffix(pagePath, "/"), s.cfg.Page).ServeHTTP(c.out, c.Request)
	return nil
}
