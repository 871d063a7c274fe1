package gateway

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/show/view"
)

// A client that opens links for its user gets that of a decision, by elicitation of mode url. Its answer says that the
// link was opened or not, and decides nothing: a client may answer by itself.

const (
	offerID    = "worldkernel-"        // begins the ids of offers
	offerState = "worldkernel-offered" // of a call without a session that was answered with an offer
	methodDone = "notifications/elicitation/complete"
	offerInput = "elicitation/create"
	metaClient = "io.modelcontextprotocol/clientCapabilities"
)

// capabilities are what a client can do, or a server.
type capabilities struct {
	links bool // a client opens links for its user
	tasks bool // it knows tasks
}

// readCapabilities reads capabilities, of both eras of the protocol.
func readCapabilities(data json.RawMessage) capabilities {
	var of struct {
		Elicitation struct {
			URL *struct{} `json:"url"`
		} `json:"elicitation"`
		Tasks      *struct{}                  `json:"tasks"`
		Extensions map[string]json.RawMessage `json:"extensions"`
	}
	if json.Unmarshal(data, &of) != nil {
		return capabilities{}
	}
	return capabilities{of.Elicitation.URL != nil, of.Tasks != nil || of.Extensions[taskExtension] != nil}
}

// answersOffer reports whether a message of a client answers an offer.
func answersOffer(m *mcpMessage) bool {
	return m.method == "" && strings.HasPrefix(idKey(m.id), "t"+offerID)
}

// offer offers the client the link of what its call waits for. It returns the answer to a call without a session, which
// the client makes again then; nil: the call goes on.
func (c *toolCall) offer(e *receipt.Entry) (answer []byte) {
	s := c.server
	link := s.g.link(e)
	s.mu.Lock()
	opens := s.can[c.request.session].links
	s.number++
	id := quoted(fmt.Sprint(offerID, s.number))
	s.mu.Unlock()
	if c.stateless() {
		opens = readCapabilities(c.meta[metaClient]).links && len(c.more) == 0 // else the server's own state would be lost
	}
	if link == "" || !opens || !s.g.cfg.Offers {
		return nil
	}
	message := "A person has to approve a call of " + view.Visible(shorten(s.name+"/"+c.tool, maxName), "")
	params := fmt.Appendf(nil, `{"mode":"url","elicitationId":%s,"url":%s,"message":%s}`, id, quoted(link), quoted(message))
	if c.stateless() {
		return c.result(fmt.Appendf(nil, `{"resultType":"input_required","inputRequests":{"approval":{"method":%q,"params":%s}},"requestState":%q}`, offerInput, params, offerState))
	}
	c.offered = id
	c.toClient(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, offerInput, params))
	return nil
}

// unoffer takes an offer back: nobody waits for the answer to it any more.
func (c *toolCall) unoffer() {
	if c.offered != nil {
		c.toClient(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%q,"params":{"elicitationId":%s}}`, methodDone, c.offered))
		c.toClient(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%q,"params":{"requestId":%s}}`, methodCancelled, c.offered))
	}
}
