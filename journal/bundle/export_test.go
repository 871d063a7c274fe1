package bundle

// Item returns the item of a header that no Writer would write.
func (h Header) Item() []byte { return h.append(nil) }
