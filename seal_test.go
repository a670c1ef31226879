package pawl_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
)

func sealKey(b byte) []byte { return bytes.Repeat([]byte{b}, pawl.MinSealKey) }

// sealed returns a state that waits, with a staged approval, and the state sealed with sealKey(1).
func sealed(t *testing.T) (*pawl.RunState, []byte) {
	t.Helper()
	s := runTo(nil, lookAndRefund)(t)
	noError(t, s.Approve(s.Interruptions()[0], "alice"))
	text, err := s.Seal(sealKey(1))
	noError(t, err)
	return s, text
}

// S11.1, S11.4
func TestSeal(t *testing.T) {
	s, text := sealed(t)
	for name, keys := range map[string][][]byte{"its key": {sealKey(1)}, "an older key too": {sealKey(2), sealKey(1)}} {
		got, err := pawl.OpenRunState(text, keys...)
		noError(t, err)
		want, _ := json.Marshal(s)
		have, _ := json.Marshal(got)
		if diff := cmp.Diff(string(want), string(have)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
		if len(got.Staged()) != 1 {
			t.Errorf("%s: %d decisions staged, want 1", name, len(got.Staged()))
		}
	}
	if i := strings.IndexFunc(string(text), func(r rune) bool {
		return !strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.", r)
	}); i >= 0 {
		t.Errorf("the sealed state has %q, which is not safe in a URL", text[i])
	}
	again, err := s.Seal(sealKey(1))
	noError(t, err)
	if !bytes.Equal(text, again) {
		t.Error("the same state and key give another text")
	}
}

// sealByHand seals as S11.1 says it, whatever the document is.
func sealByHand(doc, key []byte) []byte {
	mac := func(text string) []byte {
		h := hmac.New(sha256.New, key)
		h.Write([]byte(text))
		return h.Sum(nil)
	}
	encode := base64.RawURLEncoding.EncodeToString
	covered := "pawlseal1." + encode(mac("pawl-seal-key/1")[:8]) + "." + encode(doc)
	return []byte(covered + "." + encode(mac(covered)))
}

// S11.1
func TestSealForm(t *testing.T) {
	s, text := sealed(t)
	doc, err := s.MarshalJSON()
	noError(t, err)
	if diff := cmp.Diff(string(sealByHand(doc, sealKey(1))), string(text)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	// Computed with Python's hmac module.
	const want = "pawlseal1.CP2MbxP46Kg.e30._cgpCjkVz0Pj-cHQqmwpYcTkfJJpKIwOLVi-2uKKJ3Y"
	if got := string(sealByHand([]byte("{}"), sealKey(1))); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Every byte counts, whatever it is changed to, and so does every end. [S11.2]
func TestSealRefusesAnyChange(t *testing.T) {
	_, text := sealed(t)
	for i := range text {
		for _, with := range []byte{text[i] ^ 1, text[i] ^ 0x20, text[i] ^ 0x80, '.', '\n', 0} {
			if with == text[i] {
				continue
			}
			edited := bytes.Clone(text)
			edited[i] = with
			if _, err := pawl.OpenRunState(edited, sealKey(1)); !errors.Is(err, pawl.ErrSeal) {
				t.Fatalf("byte %d %q as %q: %v, want ErrSeal", i, text[i], with, err)
			}
		}
		if _, err := pawl.OpenRunState(text[:i], sealKey(1)); !errors.Is(err, pawl.ErrSeal) {
			t.Fatalf("the first %d bytes: %v, want ErrSeal", i, err)
		}
	}
}

// What was never sealed, or sealed by somebody else, is not read. [S11.2]
func TestSealRefusesWhatIsNotSealed(t *testing.T) {
	s, text := sealed(t)
	doc, err := json.Marshal(s)
	noError(t, err)
	parts := strings.Split(string(text), ".")
	encode := base64.RawURLEncoding.EncodeToString
	edited := bytes.Replace(doc, []byte(`"by":"alice"`), []byte(`"by":"mallory"`), 1)
	if bytes.Equal(edited, doc) {
		t.Fatal("the document does not say who approved")
	}
	for name, v := range map[string]string{
		"nothing":                      "",
		"a document":                   string(doc),
		"a document in base64":         encode(doc),
		"only the prefix":              "pawlseal1.",
		"only the prefix and dots":     "pawlseal1...",
		"without the seal":             strings.Join(parts[:3], "."),
		"with an empty seal":           strings.Join(parts[:3], ".") + ".",
		"with another document":        strings.Join([]string{parts[0], parts[1], encode(edited), parts[3]}, "."),
		"with the document in front":   string(doc) + string(text),
		"with something behind":        string(text) + " ",
		"with a line feed behind":      string(text) + "\n",
		"with padding":                 string(text) + "=",
		"with a part more":             string(text) + "." + parts[3],
		"twice":                        string(text) + string(text),
		"of another version":           strings.Replace(string(text), "pawlseal1", "pawlseal2", 1),
		"nested deeply":                strings.Join([]string{parts[0], parts[1], encode(bytes.Repeat([]byte("["), 1e6)), parts[3]}, "."),
		"with NUL and invalid UTF-8":   strings.Join([]string{parts[0], parts[1], encode([]byte("\x00\xff\xfe")), parts[3]}, "."),
		"of no key, with no key's id":  strings.Join([]string{parts[0], "", parts[2], parts[3]}, "."),
		"with the key's id of another": strings.Join([]string{parts[0], "AAAAAAAAAAA", parts[2], parts[3]}, "."),
	} {
		if got, err := pawl.OpenRunState([]byte(v), sealKey(1)); !errors.Is(err, pawl.ErrSeal) || got != nil {
			t.Errorf("%s: %v, want ErrSeal", name, err)
		}
	}
	if _, err := pawl.OpenRunState(text, sealKey(2), sealKey(3)); !errors.Is(err, pawl.ErrSeal) || !strings.Contains(err.Error(), "another key") {
		t.Errorf("with other keys: %v, want ErrSeal", err)
	}
}

// A seal is no licence: a document that was sealed is read as strictly as any other. [S11.3]
func TestSealedDocumentIsChecked(t *testing.T) {
	s, _ := sealed(t)
	doc, err := json.Marshal(s)
	noError(t, err)
	for name, c := range map[string]struct {
		doc  string
		want error
	}{
		"a newer schema":           {`{"schema":"pawl.run/2"}`, pawl.ErrNewerState},
		"not JSON":                 {"\x00\xff", pawl.ErrState},
		"nested deeply":            {strings.Repeat("[", 1e6), pawl.ErrState},
		"a member twice":           {`{"schema":"pawl.run/1","run":"a","run":"a"}`, pawl.ErrState},
		"a decision nobody staged": {strings.Replace(string(doc), `"interruption":"1.2#0"`, `"interruption":"1.1#0"`, 1), pawl.ErrState},
	} {
		if c.doc == string(doc) {
			t.Fatalf("%s: the document was not changed", name)
		}
		text := sealByHand([]byte(c.doc), sealKey(1))
		if _, err := pawl.OpenRunState(text, sealKey(1)); !errors.Is(err, c.want) || errors.Is(err, pawl.ErrSeal) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// S11.5
func TestSealNeedsAKey(t *testing.T) {
	s, text := sealed(t)
	var wrong *pawl.ConfigError
	for _, n := range []int{0, 1, 16, 31} {
		if _, err := s.Seal(make([]byte, n)); !errors.As(err, &wrong) {
			t.Errorf("sealed with %d bytes: %v, want a *ConfigError", n, err)
		}
		if _, err := pawl.OpenRunState(text, sealKey(1), make([]byte, n)); !errors.As(err, &wrong) {
			t.Errorf("opened with %d bytes: %v, want a *ConfigError", n, err)
		}
	}
	if _, err := pawl.OpenRunState(text); !errors.As(err, &wrong) {
		t.Errorf("opened without a key: %v, want a *ConfigError", err)
	}
	if _, err := new(pawl.RunState).Seal(sealKey(1)); !errors.Is(err, pawl.ErrState) {
		t.Errorf("an empty state: %v, want ErrState", err)
	}
}

func FuzzOpenRunState(f *testing.F) {
	f.Add([]byte("pawlseal1.AAAAAAAAAAA.e30.AAAA"))
	f.Add([]byte("pawlseal1..."))
	f.Add([]byte(`{"schema":"pawl.run/1"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if _, err := pawl.OpenRunState(text, sealKey(1), sealKey(2)); !errors.Is(err, pawl.ErrSeal) {
			t.Errorf("%v, want ErrSeal", err)
		}
	})
}
