// Command pawl-verify checks, offline, a proof that "pawl prove" wrote: that a call was made, decided and run as
// the proof says, according to the ledger whose head somebody kept.
//
//	pawl-verify proof.json HEAD
//
// HEAD is the head's hash in hexadecimal, or a file with it or with the line that "pawl audit RUN --head" printed.
// The exit code is 0 if the proof holds, 1 if it does not, 2 if it could not be checked.
//
// The program is meant to be read: this file checks that the records of a proof are in the ledger, story.go says
// what they mean. It needs only the standard library and shares no code with Pawl. docs/spec.md S10 defines what it checks, docs/audit.md says what that is worth.
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"os"
	"strings"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: pawl-verify PROOF HEAD\nPROOF is a file of \"pawl prove\"; HEAD the hash that was kept, or a file with it")
		os.Exit(2)
	}
	proof, err := os.ReadFile(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "pawl-verify:", err)
		os.Exit(2)
	}
	head, err := readHead(os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, "pawl-verify:", err)
		os.Exit(2)
	}
	var story strings.Builder // nothing of a proof is shown before all of it holds
	if err := verify(&story, proof, head); err != nil {
		fmt.Fprintln(os.Stderr, "pawl-verify: the proof does not hold:", err)
		os.Exit(1)
	}
	fmt.Print(story.String())
}

type hash = [sha256.Size]byte

// A proof has the members below and no others, in this order.
type proof struct {
	Schema    string `json:"schema"`
	Run       string `json:"run"`
	Size      uint64 `json:"size"`
	Root      string `json:"root"`
	Call      string `json:"call"`
	Arguments string `json:"arguments"`
	Facts     []fact `json:"facts"`
}

// A headLine is a head as "pawl audit" prints it [S10.2].
type headLine struct {
	Schema string `json:"schema"`
	Run    string `json:"run"`
	Size   uint64 `json:"size"`
	Root   string `json:"root"`
	Head   string `json:"head"`
}

type fact struct {
	Fact   uint64   `json:"fact"` // its number in the ledger, from 1
	Record record   `json:"record"`
	Path   []string `json:"path"`
}

type record struct {
	Kind    string `json:"k"`
	Version int64  `json:"v"`
	Frame   string `json:"f"`
	Time    int64  `json:"t"`
	Salt    string `json:"s"`
	Payload string `json:"p"`
}

// readHead returns the hash that was kept. Of a file the last line counts: an export ends with its head.
func readHead(arg string) (hash, error) {
	if h, err := unhex(arg); err == nil {
		return h, nil
	}
	text, err := os.ReadFile(arg)
	if err != nil {
		return hash{}, fmt.Errorf("%q is neither a hash of 64 hexadecimal digits nor a file", arg)
	}
	text = bytes.TrimSpace(text)
	text = text[bytes.LastIndexByte(text, '\n')+1:]
	var line headLine
	if json.Unmarshal(text, &line) != nil {
		return unhex(string(text))
	}
	h, err := unhex(line.Head)
	root, err2 := unhex(line.Root)
	if err != nil || err2 != nil || line.Schema != "pawl.head/1" || headHash(line.Run, line.Size, root) != h || !sameText(line, text) {
		return hash{}, fmt.Errorf("%s: this is no head of a ledger, or was edited", arg)
	}
	return h, nil
}

func unhex(text string) (h hash, err error) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != len(h) || hex.EncodeToString(b) != text {
		return h, fmt.Errorf("%.80q is not 64 hexadecimal digits", text)
	}
	return hash(b), nil
}

// verify checks a proof against the hash of a head and writes what it shows.
func verify(w io.Writer, text []byte, head hash) error {
	p, err := parse(text)
	if err != nil {
		return err
	}
	root, err := unhex(p.Root)
	if err != nil {
		return err
	}
	if headHash(p.Run, p.Size, root) != head {
		return errors.New("it is for another head than the one that was kept")
	}
	for i, f := range p.Facts {
		if f.Fact == 0 || f.Fact > p.Size || i > 0 && f.Fact <= p.Facts[i-1].Fact {
			return fmt.Errorf("fact %d is out of order", f.Fact)
		}
		leaf, err := leafHash(f.Record)
		if err != nil {
			return err
		}
		got, err := climb(leaf, p.Size, f.Fact-1, f.Path)
		if err != nil || got != root {
			return fmt.Errorf("fact %d is not in the ledger: it is another, or stands elsewhere", f.Fact)
		}
	}
	return tell(w, p, head)
}

// parse reads a proof.
func parse(text []byte) (*proof, error) {
	var p proof
	if err := json.Unmarshal(text, &p); err != nil {
		return nil, fmt.Errorf("it is no proof: %w", err)
	}
	if p.Schema != "pawl.proof/1" || !sameText(p, text) {
		return nil, errors.New("it is not in the form that pawl prove writes")
	}
	return &p, nil
}

// sameText says that what was read is the same text when it is written again, white space aside: so there is nothing in
// the text twice or under a name in other letters, and nothing that another reader could take for something else.
func sameText(read any, text []byte) bool {
	var again, given bytes.Buffer
	enc := json.NewEncoder(&again)
	enc.SetEscapeHTML(false)
	if errors.Join(enc.Encode(read), json.Compact(&given, text)) != nil {
		return false
	}
	return bytes.Equal(bytes.TrimSpace(again.Bytes()), given.Bytes())
}

// headHash binds run, size and root [S10.2].
func headHash(run string, size uint64, root hash) hash {
	b := appendText([]byte{2}, run)
	b = binary.BigEndian.AppendUint64(b, size)
	return sha256.Sum256(append(b, root[:]...))
}

// leafHash is the hash of a record [S8.6].
func leafHash(r record) (hash, error) {
	salt, err := base64.RawURLEncoding.Strict().DecodeString(r.Salt)
	if err != nil || len(salt) != 16 {
		return hash{}, fmt.Errorf("%q is no salt", r.Salt)
	}
	b := appendText(append([]byte{0}, salt...), r.Kind)
	b = binary.BigEndian.AppendUint64(b, uint64(r.Version))
	b = appendText(b, r.Frame)
	b = binary.BigEndian.AppendUint64(b, uint64(r.Time))
	return sha256.Sum256(appendText(b, r.Payload)), nil
}

func appendText(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint64(b, uint64(len(s))), s...)
}

// climb returns the root to which an audit path leads: in a tree of size leaves the left half has the largest
// power of two below size, and the last hash of the path is that of the half in which the leaf is not (RFC 6962,
// section 2.1.1).
func climb(leaf hash, size, index uint64, path []string) (hash, error) {
	if size == 1 && len(path) == 0 {
		return leaf, nil
	}
	if size == 1 || len(path) == 0 {
		return hash{}, errors.New("the path has another length")
	}
	other, err := unhex(path[len(path)-1])
	if err != nil {
		return hash{}, err
	}
	half := uint64(1) << (bits.Len64(size-1) - 1)
	if index < half {
		left, err := climb(leaf, half, index, path[:len(path)-1])
		return sha256.Sum256(append(append([]byte{1}, left[:]...), other[:]...)), err
	}
	right, err := climb(leaf, size-half, index-half, path[:len(path)-1])
	return sha256.Sum256(append(append([]byte{1}, other[:]...), right[:]...)), err
}
