package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// ReadWritten reads into dst what json.Marshal wrote of a value of its type. A member that the type does not have, because it
// had another one then, is an error.
func ReadWritten(data []byte, dst any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(dst); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("pawl: more follows behind the value")
	}
	return nil
}
