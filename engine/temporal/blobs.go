package temporal

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/protobuf/proto"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"github.com/pawl-agents/pawl"
)

// Blobs keeps what is too large for a history, by its content. What was put is needed for as long as
// the history is. Its methods are called from any goroutine. If it has a method Check(write bool)
// error, that is asked before a worker is made and, without write, before a run is begun.
type Blobs interface {
	// Put stores data under a key. The same key always comes with the same data, and when Put
	// returns nil the data survives a crash of the machine.
	Put(ctx context.Context, key string, data []byte) error
	// Get returns what was put.
	Get(ctx context.Context, key string) ([]byte, error)
}

// spillAbove is the size, in bytes, above which a payload is kept in Blobs.
const spillAbove = 64 << 10

// blobTimeout bounds a read or a write of one blob.
const blobTimeout = 30 * time.Second

// blobEncoding is the encoding of a payload that stands for a blob: its data is the key.
const blobEncoding = "pawl/blob"

// DataConverter returns the converter for clients: payloads above 64 KB are kept in the blobs, and
// the history has their SHA-256. Nil blobs mean the SDK's default. Every client and worker of a
// namespace that handles the runs needs it with the same blobs.
func DataConverter(blobs Blobs) converter.DataConverter {
	return Converter(converter.GetDefaultDataConverter(), blobs)
}

// Converter is DataConverter around another converter, for example one that encrypts.
func Converter(inner converter.DataConverter, blobs Blobs) converter.DataConverter {
	if blobs == nil {
		return inner
	}
	// A blob may take longer to read than a workflow may compute.
	return workflow.DataConverterWithoutDeadlockDetection(converter.NewCodecDataConverter(inner, codec{blobs}))
}

// checkBlobs finds a mistake that would else come out with the first large payload, when an
// effect may have happened.
func checkBlobs(b Blobs, write bool) error {
	c, ok := b.(interface{ Check(write bool) error })
	if !ok {
		return nil
	}
	if err := c.Check(write); err != nil {
		return &pawl.ConfigError{Field: "Options.Blobs", Problem: "cannot be used: " + err.Error()}
	}
	return nil
}

// needsBlobs is the error for what is too large to go without.
func needsBlobs(what string) *pawl.ConfigError {
	return &pawl.ConfigError{Field: "Options.Blobs", Problem: "is needed for " + what + ": Temporal keeps at most 2 MB in one place"}
}

// codec puts large payloads into blobs.
type codec struct{ blobs Blobs }

// Encode stores the payloads that are large.
func (c codec) Encode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	ctx, cancel := context.WithTimeout(context.Background(), blobTimeout)
	defer cancel()
	list := make([]*commonpb.Payload, len(payloads))
	for i, p := range payloads {
		list[i] = p
		if len(p.GetData()) <= spillAbove {
			continue
		}
		data, err := proto.MarshalOptions{Deterministic: true}.Marshal(p)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(data)
		key := hex.EncodeToString(sum[:])
		if err := c.blobs.Put(ctx, key, data); err != nil {
			return nil, fmt.Errorf("pawl: a payload of %d bytes could not be stored: %w", len(data), err)
		}
		list[i] = &commonpb.Payload{Metadata: map[string][]byte{converter.MetadataEncoding: []byte(blobEncoding)}, Data: []byte(key)}
	}
	return list, nil
}

// Decode reads the payloads that are stored.
func (c codec) Decode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	ctx, cancel := context.WithTimeout(context.Background(), blobTimeout)
	defer cancel()
	list := make([]*commonpb.Payload, len(payloads))
	for i, p := range payloads {
		list[i] = p
		if string(p.GetMetadata()[converter.MetadataEncoding]) != blobEncoding {
			continue
		}
		key := string(p.GetData())
		data, err := c.blobs.Get(ctx, key)
		if err != nil {
			return nil, fmt.Errorf("pawl: payload %s could not be read: %w", key, err)
		}
		if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != key {
			return nil, fmt.Errorf("pawl: payload %s is damaged", key)
		}
		list[i] = &commonpb.Payload{}
		if err := proto.Unmarshal(data, list[i]); err != nil {
			return nil, fmt.Errorf("pawl: payload %s is damaged: %w", key, err)
		}
	}
	return list, nil
}

// Dir keeps blobs as files of a directory, which must exist. Processes on several machines need
// one that all of them see.
type Dir string

// Check says whether the directory is there and, for a worker, whether files can be written in it.
func (d Dir) Check(write bool) error {
	info, err := os.Stat(string(d))
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is no directory", string(d))
	case !write:
		return nil
	}
	f, err := os.CreateTemp(string(d), ".blob-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// Put writes a file that is not there yet.
func (d Dir) Put(_ context.Context, key string, data []byte) (err error) {
	path := d.path(key)
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	f, err := os.CreateTemp(string(d), ".blob-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err == nil {
		err = d.sync()
	}
	return err
}

// sync makes a new name survive a crash.
func (d Dir) sync() error {
	f, err := os.Open(string(d))
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Get reads a file.
func (d Dir) Get(_ context.Context, key string) ([]byte, error) {
	if !fs.ValidPath(key) || filepath.Base(key) != key {
		return nil, fmt.Errorf("pawl: %q is not the key of a blob", key)
	}
	return os.ReadFile(d.path(key))
}

func (d Dir) path(key string) string { return filepath.Join(string(d), key) }
