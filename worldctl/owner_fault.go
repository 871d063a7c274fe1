package worldctl

import "errors"

// Why the owner of a world does not carry out a command, or not all of it.
var (
	errBesides      = errors.New("this cannot be done beside the process that owns the world")
	errEnding       = errors.New("the process that owns the world has ended")
	errSlow         = errors.New("nobody reads what is printed")
	errOwnerVersion = errors.New("the process that owns the world is of another version")
	errOwnerRefuses = errors.New("the process that owns the world does not do it")
	errOwnerGone    = errors.New("the process that owns the world ended in the midst of it")
)

func isOfOwner(err error) bool {
	_, hint := knownOfOwner(err)
	return hint != ""
}

// knownOfOwner says what it comes to that another process owns the world.
func knownOfOwner(err error) (code int, hint string) {
	switch {
	case errors.Is(err, errBesides):
		return exitConflict, "wait until that process has ended, or end it, then type this again"
	case errors.Is(err, errOwnerVersion):
		return exitConflict, "use the program that runs the world: worldctl version tells which one this is"
	case errors.Is(err, errOwnerRefuses):
		return exitConflict, "type it again in a moment"
	case errors.Is(err, errOwnerGone):
		return exitFailed, "worldctl status tells where the world stands, and worldctl tail whether this was still done"
	}
	return exitFailed, ""
}
