package schema

import (
	"net/mail"
	"net/netip"
	"regexp"
	"strings"
	"time"
)

// formatNames are the string formats that strict schemas may name
// (https://platform.openai.com/docs/guides/structured-outputs#supported-properties).
const formatNames = "date-time, time, date, duration, email, hostname, ipv4, ipv6, uuid"

var (
	dateTimePattern = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$`)
	durationPattern = regexp.MustCompile(`^P(\d+W|(\d+Y)?(\d+M)?(\d+D)?(T(\d+H)?(\d+M)?(\d+(\.\d+)?S)?)?)$`)
	hostnamePattern = regexp.MustCompile(`^[0-9A-Za-z]([0-9A-Za-z-]{0,61}[0-9A-Za-z])?(\.[0-9A-Za-z]([0-9A-Za-z-]{0,61}[0-9A-Za-z])?)*$`)
	uuidPattern     = regexp.MustCompile(`^[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}$`)
)

// formatCheck returns what reports whether text has the format named name, nil if there is no such format
// (https://json-schema.org/draft/2020-12/json-schema-validation#section-7.3).
func formatCheck(name string) func(string) bool {
	switch name {
	case "date-time":
		return isDateTime
	case "time":
		return func(text string) bool { return isDateTime("2000-01-01T" + text) }
	case "date":
		return func(text string) bool { return isDateTime(text + "T00:00:00Z") }
	case "duration":
		return isDuration
	case "email":
		return isEmail
	case "hostname":
		return func(text string) bool { return len(text) <= 253 && hostnamePattern.MatchString(text) }
	case "ipv4":
		return func(text string) bool { a, err := netip.ParseAddr(text); return err == nil && a.Is4() }
	case "ipv6":
		return func(text string) bool {
			a, err := netip.ParseAddr(text)
			return err == nil && a.Is6() && a.Zone() == ""
		}
	case "uuid":
		return uuidPattern.MatchString
	}
	return nil
}

// isDateTime reports whether text is an RFC 3339 date-time. Package time checks the numbers and is lax about the digits
// (https://go.dev/issue/54580).
func isDateTime(text string) bool {
	return dateTimePattern.MatchString(text) && new(time.Time).UnmarshalText([]byte(text)) == nil
}

// isDuration reports whether text is an ISO 8601 duration (RFC 3339, appendix A) with at least one part.
func isDuration(text string) bool {
	return durationPattern.MatchString(text) && text != "P" && !strings.HasSuffix(text, "T")
}

func isEmail(text string) bool {
	a, err := mail.ParseAddress(text)
	return err == nil && a.Name == "" && a.Address == text
}
