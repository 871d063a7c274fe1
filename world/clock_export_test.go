package world

// CheckClock is checkClock, for tests.
var CheckClock = checkClock
