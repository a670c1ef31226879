package machine

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/pawl-agents/pawl/journal"
)

// FrameName returns the name of the frame that a call of a frame runs [M17.1].
func FrameName(frame string, call journal.EffectID) string {
	name := make([]byte, 0, len(frame)+16)
	if frame != "" {
		name = append(append(name, frame...), '/')
	}
	name = strconv.AppendInt(name, int64(call.N), 10)
	name = append(name, '.')
	return string(strconv.AppendInt(name, int64(call.P), 10))
}

// parseFrame takes the name of a nested frame apart.
func parseFrame(name string) (parent string, call journal.EffectID, ok bool) {
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		parent, name = name[:i], name[i+1:]
		if parent == "" {
			return "", call, false
		}
	}
	n, p, _ := strings.Cut(name, ".")
	call.Kind = journal.EffectTool
	return parent, call, parseNumber(n, &call.N) && parseNumber(p, &call.P)
}

// parseNumber reads a number as FrameName and InterruptionID write it.
func parseNumber(text string, n *int) bool {
	v, err := strconv.ParseUint(text, 10, 31)
	*n = int(v)
	return err == nil && text == strconv.FormatUint(v, 10)
}

// InterruptionID names an interruption: the frame, the call and its stage, never reused
// [M16.4].
func InterruptionID(frame string, call journal.EffectID, stage int) string {
	return fmt.Sprintf("%s#%d", FrameName(frame, call), stage)
}

// ParseInterruptionID reads what InterruptionID wrote.
func ParseInterruptionID(s string) (frame string, call journal.EffectID, stage int, err error) {
	at, st, _ := strings.Cut(s, "#")
	frame, call, ok := parseFrame(at)
	if !ok || !parseNumber(st, &stage) {
		return "", journal.EffectID{}, 0, fmt.Errorf("pawl: %q is not an interruption id", s)
	}
	return frame, call, stage, nil
}
