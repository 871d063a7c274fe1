package api

import (
	"net/http"

	"github.com/worldkernel/worldkernel/serve/link"
)

// linkPath begins the paths of links by which people decide about one effect, without a token.
const linkPath = "/decide/"

// followLink answers who has followed a link. Of a world that there is not it says no more than of a link that is over.
func followLink(c *call) error {
	if err := c.find(); err != nil {
		if known := failureOf(err); known != nil && known.Status == http.StatusNotFound {
			link.Gone(c.out)
			return nil
		}
		return err
	}
	if c.exit != nil {
		defer c.exit()
	}
	if c.world != nil { // else another process has answered
		link.Serve(c.out, c.Request, c.world.Local, c.PathValue("ticket"))
	}
	return nil
}
