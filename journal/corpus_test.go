package journal_test

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl/journal"
)

var update = flag.Bool("update", false, "write the corpus if it is missing")

// corpus has a record a line, of every kind of fact and with every member, as version 1 of their encodings wrote them. It
// is read by every later version [S8.4], so -update writes the file only if it is missing.
const corpus = "testdata/1.jsonl"

func TestCorpus(t *testing.T) {
	file, err := os.ReadFile(corpus)
	if errors.Is(err, os.ErrNotExist) && *update {
		file = writeCorpus(t)
		err = nil
	}
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[journal.Kind]bool{}
	for line := range bytes.Lines(file) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		r, err := journal.ReadRecordJSON(line)
		if err != nil {
			t.Errorf("%v\n%s", err, line)
			continue
		}
		f, err := journal.Decode(r)
		if err != nil {
			t.Errorf("%v\n%s", err, line)
			continue
		}
		kinds[r.Kind] = true
		// Kinds whose version has moved on are written in their new version; the others as they were.
		if again := journal.Encode(f, r.Salt); again.Version == r.Version {
			if diff := cmp.Diff(r, again); diff != "" {
				t.Errorf("-read +written again:\n%s", diff)
			}
		}
		if again := journal.AppendRecordJSON(nil, &r); !bytes.Equal(again, line) {
			t.Errorf("read    %s\nwritten %s", line, again)
		}
	}
	for _, e := range encodings {
		if !kinds[e.body.Kind()] {
			t.Errorf("%s has no fact of kind %s", corpus, e.body.Kind())
		}
	}
}

func writeCorpus(t *testing.T) (file []byte) {
	t.Helper()
	for i, e := range encodings {
		f := journal.Fact{Time: 1790000000000 + int64(i), Body: e.body}
		if i%7 == 3 {
			f.Frame = "1.0/é"
		}
		r := journal.Encode(f, [16]byte{byte(i), 15: 255})
		file = append(journal.AppendRecordJSON(file, &r), '\n')
	}
	if err := os.MkdirAll("testdata", 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(corpus, file, 0o666); err != nil {
		t.Fatal(err)
	}
	return file
}
