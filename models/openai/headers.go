package openai

import (
	"fmt"
	"maps"
	"net/textproto"
	"slices"
	"strings"

	"github.com/openai/openai-go/v3/option"
)

// checkHeaders reports names and values that HTTP does not allow (https://www.rfc-editor.org/rfc/rfc9110#section-5). It does
// not show the values: they may be secrets.
func checkHeaders(headers map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		if name == "" || strings.ContainsFunc(name, notTokenRune) {
			return fmt.Errorf("header name %q is invalid", name)
		}
		if strings.ContainsFunc(headers[name], isControl) {
			return fmt.Errorf("value of header %s is invalid", name)
		}
	}
	return nil
}

func notTokenRune(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return false
	}
	return !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}

func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

func hasHeader(headers map[string]string, canonical string) bool {
	for name := range headers {
		if textproto.CanonicalMIMEHeaderKey(name) == canonical {
			return true
		}
	}
	return false
}

// headerOptions set the headers in the order of their names, so that of two spellings of one name the same one always wins.
func headerOptions(headers map[string]string) []option.RequestOption {
	return optionsOf(headers, option.WithHeader)
}

func optionsOf(values map[string]string, with func(name, value string) option.RequestOption) []option.RequestOption {
	if len(values) == 0 {
		return nil
	}
	opts := make([]option.RequestOption, 0, len(values))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		opts = append(opts, with(name, values[name]))
	}
	return opts
}
