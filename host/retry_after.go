package host

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// unreadableRetryAfter is how long to wait where a server says when to come again in a
// form that nobody reads: it did not say "at once".
const unreadableRetryAfter = time.Minute

// RetryAfter returns how long a server asks to be left alone, at most maxRetryAfter; 0: it
// does not say, or the time is over. Retry-After is a number of seconds or a date (RFC
// 9110 10.2.3). Servers also say "1.5", "30s" and dates of RFC 3339.
func RetryAfter(header http.Header, now time.Time) time.Duration {
	value := strings.TrimSpace(header.Get("Retry-After"))
	if value == "" {
		return 0
	}
	wait := unreadableRetryAfter
	if seconds, err := strconv.ParseFloat(value, 64); err == nil || math.IsInf(seconds, 1) {
		if seconds >= 0 {
			wait = time.Duration(math.Ceil(min(seconds, maxRetryAfter.Seconds()))) * time.Second
		}
	} else if d, err := time.ParseDuration(value); err == nil && d >= 0 {
		wait = d
	} else if date, err := http.ParseTime(value); err == nil {
		wait = max(0, date.Sub(now))
	} else if date, err := time.Parse(time.RFC3339, value); err == nil {
		wait = max(0, date.Sub(now))
	}
	return min(wait, maxRetryAfter)
}
