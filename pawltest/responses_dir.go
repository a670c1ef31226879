package pawltest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/pawl-agents/pawl/item"
)

// responsesDir keeps the state in files, one a response and one a conversation, so that a server may die at any moment and
// start again. A file is replaced by renaming, so it is old or new, never half. Nothing is synced: the files survive the
// process, not the machine. Its methods are called with the state's lock held; a nil *responsesDir keeps nothing.
type responsesDir struct {
	path     string
	reserved int   // ids up to this number may be in use
	err      error // first error of reserve, told by the next save
}

// savedResponse is the file of a response. A deleted one stays, for the responses that continue it.
type savedResponse struct {
	ID      string   `json:"id"`
	Order   int      `json:"order"`
	Deleted bool     `json:"deleted,omitempty"`
	Parent  string   `json:"parent,omitempty"`
	Base    []string `json:"base,omitempty"`
	Input   []string `json:"input"`
	Listed  []string `json:"listed,omitempty"`
	Output  []string `json:"output"`
	Status  string   `json:"status"`
	Body    string   `json:"body"`
	Bytes   int      `json:"bytes"`
}

// savedConversation is the file of a conversation.
type savedConversation struct {
	ID        string   `json:"id"`
	CreatedAt int64    `json:"created_at"`
	Metadata  string   `json:"metadata"`
	Items     []string `json:"items"`
}

const (
	responsesSub     = "responses"
	conversationsSub = "conversations"
	idsFile          = "ids.json"
	idBlock          = 1000 // ids are reserved by so many, to write the file rarely
)

// openResponsesState makes an empty state, or loads the one in a directory, which is created if it is missing.
func openResponsesState(retain int, path string) (*responsesState, error) {
	if path == "" {
		return newResponsesState(retain, nil), nil
	}
	d := &responsesDir{path: path}
	for _, sub := range [...]string{responsesSub, conversationsSub} {
		if err := os.MkdirAll(filepath.Join(path, sub), 0o700); err != nil {
			return nil, fmt.Errorf("pawl: open the Responses server's directory: %w", err)
		}
	}
	s := newResponsesState(retain, d)
	if err := d.load(s); err != nil {
		return nil, fmt.Errorf("pawl: load the Responses server's directory: %w", err)
	}
	return s, nil
}

func (d *responsesDir) load(s *responsesState) error {
	if err := d.read(idsFile, &d.reserved); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s.ids.base = d.reserved
	conversations, err := readAll[savedConversation](d, conversationsSub)
	if err != nil {
		return err
	}
	for _, saved := range conversations {
		c := &conversation{id: saved.ID, createdAt: saved.CreatedAt, metadata: saved.Metadata, known: map[string]bool{}}
		s.conversations[c.id] = c
		s.extend(c, trusted(saved.Items))
	}
	responses, err := readAll[savedResponse](d, responsesSub)
	if err != nil {
		return err
	}
	slices.SortFunc(responses, func(a, b savedResponse) int { return cmp.Compare(a.Order, b.Order) })
	d.link(s, responses)
	return nil
}

// link restores the responses, parents before their children.
func (d *responsesDir) link(s *responsesState, saved []savedResponse) {
	all := map[string]*response{}
	for _, f := range saved {
		r := &response{
			id: f.ID, order: f.Order, parent: all[f.Parent], base: trusted(f.Base),
			input: trusted(f.Input), listed: trusted(f.Listed), output: trusted(f.Output), status: f.Status, body: f.Body, bytes: f.Bytes,
		}
		for _, it := range r.output {
			r.open.add(it, it.Head())
		}
		all[r.id] = r
		s.keep(r)
		if f.Deleted {
			s.forget(r.id)
		}
	}
}

func (d *responsesDir) saveResponse(r *response, deleted bool) error {
	if d == nil {
		return nil
	}
	saved := savedResponse{
		ID: r.id, Order: r.order, Deleted: deleted, Base: raws(r.base),
		Input: raws(r.input), Listed: raws(r.listed), Output: raws(r.output), Status: r.status, Body: r.body, Bytes: r.bytes,
	}
	if r.parent != nil {
		saved.Parent = r.parent.id
	}
	return d.write(filepath.Join(responsesSub, r.id+".json"), saved)
}

func (d *responsesDir) saveConversation(c *conversation) error {
	if d == nil {
		return nil
	}
	return d.write(filepath.Join(conversationsSub, c.id+".json"), savedConversation{
		ID: c.id, CreatedAt: c.createdAt, Metadata: c.metadata, Items: raws(c.items),
	})
}

func (d *responsesDir) deleteConversation(c *conversation) error {
	if d == nil {
		return nil
	}
	return os.Remove(filepath.Join(d.path, conversationsSub, c.id+".json"))
}

// reserve makes sure that no later server on the directory gives out ids up to n again.
func (d *responsesDir) reserve(n int) {
	if d == nil || n <= d.reserved {
		return
	}
	d.reserved = n - n%idBlock + idBlock
	if err := d.write(idsFile, d.reserved); err != nil && d.err == nil {
		d.err = err
	}
}

// write replaces a file.
func (d *responsesDir) write(name string, value any) error {
	if d.err != nil {
		return d.err
	}
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	path := filepath.Join(d.path, name)
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func (d *responsesDir) read(name string, into any) error {
	data, err := os.ReadFile(filepath.Join(d.path, name))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// readAll reads every file of a subdirectory. Files that were being written when a server died are left alone.
func readAll[T any](d *responsesDir, sub string) ([]T, error) {
	names, err := filepath.Glob(filepath.Join(d.path, sub, "*.json"))
	if err != nil {
		return nil, err
	}
	all := make([]T, len(names))
	for i, name := range names {
		if err := d.read(filepath.Join(sub, filepath.Base(name)), &all[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// raws are the texts of items; they are JSON in a JSON string, so that their bytes survive.
func raws(items []item.Item) []string {
	out := make([]string, len(items))
	for i, it := range items {
		out[i] = it.Raw()
	}
	return out
}

// trusted are the items of texts that raws made; nil of nil.
func trusted(raws []string) []item.Item {
	if raws == nil {
		return nil
	}
	out := make([]item.Item, len(raws))
	for i, raw := range raws {
		out[i] = item.FromTrusted(raw)
	}
	return out
}
