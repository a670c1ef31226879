package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"strings"

	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/persistence/sql/sqlplugin/postgresql"
	"go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	sqliteschema "go.temporal.io/server/schema/sqlite"
	"go.temporal.io/server/tools/common/schema"
	"go.temporal.io/server/tools/sql"
)

// persistence makes what is missing in the store, and describes it.
func (s settings) persistence() (config.Persistence, error) {
	const history, visibility = "default", "visibility"
	p := config.Persistence{
		DefaultStore:     history,
		VisibilityStore:  visibility,
		NumHistoryShards: int32(s.shards),
		DataStores:       map[string]config.DataStore{},
	}
	if s.postgres == "" {
		db, err := s.sqlite()
		p.DataStores[history], p.DataStores[visibility] = config.DataStore{SQL: db}, config.DataStore{SQL: db}
		return p, err
	}
	for name, dir := range map[string]string{history: "temporal", visibility: "visibility"} {
		db, err := postgres(s.postgres, name == visibility)
		if err == nil {
			err = update(db, "postgresql/v12/"+dir)
		}
		if err != nil {
			return p, err
		}
		p.DataStores[name] = config.DataStore{SQL: db}
	}
	return p, nil
}

// sqlite describes an SQLite database, in memory if there is no file. A file gets its
// tables under another name, so that it has either all of them or does not exist.
func (s settings) sqlite() (*config.SQL, error) {
	db := &config.SQL{PluginName: sqlite.PluginName, DatabaseName: s.file, ConnectAttributes: map[string]string{"mode": "rwc"}}
	if s.file == "" {
		db.DatabaseName = "devserver"
		db.ConnectAttributes = map[string]string{"mode": "memory", "cache": "shared"}
		return db, nil
	}
	_, err := os.Stat(s.file)
	if errors.Is(err, fs.ErrNotExist) {
		half := *db
		half.DatabaseName += ".new"
		if err := os.RemoveAll(half.DatabaseName); err != nil {
			return nil, err
		}
		if err := sqliteschema.SetupSchema(&half); err != nil {
			return nil, err
		}
		err = os.Rename(half.DatabaseName, s.file)
	}
	db.ConnectAttributes["journal_mode"], db.ConnectAttributes["synchronous"] = "wal", "full"
	return db, err
}

// postgres describes the database of a URL, or the one for the visibility beside it.
func postgres(address string, visibility bool) (*config.SQL, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	db := &config.SQL{
		PluginName:        postgresql.PluginNamePGX,
		DatabaseName:      strings.TrimPrefix(u.Path, "/"),
		ConnectAddr:       u.Host,
		ConnectProtocol:   "tcp",
		ConnectAttributes: map[string]string{},
		User:              u.User.Username(),
		MaxConns:          20,
		MaxIdleConns:      20,
	}
	if u.Port() == "" {
		db.ConnectAddr = net.JoinHostPort(u.Hostname(), "5432")
	}
	if db.DatabaseName == "" || db.User == "" || u.Hostname() == "" {
		return nil, fmt.Errorf("-postgres needs postgres://USER[:PASSWORD]@HOST[:PORT]/DATABASE, and has %q", u.Redacted())
	}
	db.Password, _ = u.User.Password()
	for key, values := range u.Query() {
		db.ConnectAttributes[key] = values[0]
	}
	if visibility {
		db.DatabaseName += "_visibility"
	}
	return db, nil
}

// update brings a database to the newest schema, from nothing if it does not exist.
func update(db *config.SQL, name string) error {
	quiet := log.NewNoopLogger()
	admin := *db
	if err := sql.DoCreateDatabase(&admin, "", quiet); err != nil {
		return err
	}
	c, err := sql.NewConnection(db, quiet)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := schema.NewSetupSchemaTask(c, &schema.SetupConfig{InitialVersion: "0.0"}, quiet).Run(); err != nil {
		return err
	}
	return schema.NewUpdateSchemaTask(c, &schema.UpdateConfig{SchemaName: name}, quiet).Run()
}
