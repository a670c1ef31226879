package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/cmd/pawl/internal/demo"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/sqlstore"
	"github.com/pawl-agents/pawl/sqlstore/pgstore"
)

// storePath is the SQLite file that --store means.
func (a *app) storePath() string {
	if info, err := os.Stat(a.store); err == nil && !info.IsDir() {
		return a.store
	}
	return filepath.Join(a.store, demo.StoreFile)
}

// A store is what the commands need of one, in a file or in a database.
type store interface {
	journal.Driver
	journal.Pruner
	Close() error
}

// isDatabase says that --store means a PostgreSQL database.
func (a *app) isDatabase() bool {
	return strings.HasPrefix(a.store, "postgres://") || strings.HasPrefix(a.store, "postgresql://")
}

// likeURL begins what is meant as a URL.
var likeURL = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://`)

// likeKeywords is in what libpq takes beside URLs.
var likeKeywords = regexp.MustCompile(`(^|\s)(host|dbname|user)=`)

// checkStore refuses what names a database, and is no URL of one: it is not meant as the name of a directory.
func (a *app) checkStore() error {
	if likeKeywords.MatchString(a.store) && !likeURL.MatchString(a.store) {
		return &usageError{errors.New("--store wants a database as a URL, like postgres://user@host/database")}
	}
	if likeURL.MatchString(a.store) && !a.isDatabase() {
		return &usageError{fmt.Errorf("%s is the URL of no store; one of a PostgreSQL database begins with postgres://", a.storeName())}
	}
	return nil
}

// storeName is --store as it is shown: without a password, which PGPASSWORD can hold.
func (a *app) storeName() string {
	if u, err := url.Parse(a.store); err == nil && likeURL.MatchString(a.store) {
		if u.User != nil {
			u.User = url.User(u.User.Username())
		}
		if q := u.Query(); q.Has("password") || q.Has("sslpassword") {
			q.Del("password")
			q.Del("sslpassword")
			u.RawQuery = q.Encode()
		}
		return u.String()
	}
	return a.store
}

// openDatabase opens the store in a database.
func (a *app) openDatabase(ctx context.Context, opts pgstore.Options) (store, error) {
	st, err := pgstore.Open(ctx, a.store, &opts)
	var wrong *pawl.ConfigError
	switch {
	case errors.As(err, &wrong):
		return nil, &usageError{err}
	case errors.Is(err, pgstore.ErrNoStore):
		return nil, &hintedError{fmt.Errorf("%w in %s; submit and work make one, if the database is there", errNoStore, a.storeName()), nil}
	case err != nil:
		return nil, err
	}
	return st, nil
}

// openStore opens the store; it never makes one.
func (a *app) openStore(ctx context.Context) (store, error) {
	if a.isDatabase() {
		return a.openDatabase(ctx, pgstore.Options{Existing: true})
	}
	path := a.storePath()
	if _, err := os.Stat(path); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("%w at %s; the demo makes one", errNoStore, path)
		}
		return nil, err
	}
	return sqlstore.OpenSQLite(path, nil)
}

// withRun opens the store, finds the run that the argument names, and runs f.
func (a *app) withRun(ctx context.Context, arg string, f func(st store, run string) (any, error)) (any, error) {
	st, err := a.openStore(ctx)
	if err != nil {
		return nil, err
	}
	defer st.Close()
	run, err := findRun(ctx, st, arg)
	if err != nil {
		return nil, err
	}
	return f(st, run)
}

// page is how many runs are read from the store at once.
const page = 100

// eachRun calls f for the runs of the store, the newest first, until it returns false.
func eachRun(ctx context.Context, st store, q journal.Query, f func(journal.RunInfo) bool) error {
	q.Limit = page
	for {
		infos, err := st.List(ctx, q)
		if err != nil {
			return err
		}
		for _, info := range infos {
			if !f(info) {
				return nil
			}
		}
		if len(infos) < page {
			return nil
		}
		q.Before = infos[len(infos)-1].Run
	}
}

// findRun returns the run with the id, or the only one whose id begins like that.
func findRun(ctx context.Context, st store, arg string) (string, error) {
	var found []string
	exact := false
	err := eachRun(ctx, st, journal.Query{}, func(info journal.RunInfo) bool {
		exact = info.Run == arg
		if strings.HasPrefix(info.Run, arg) {
			found = append(found, info.Run)
		}
		return !exact
	})
	switch {
	case err != nil:
		return "", err
	case exact:
		return arg, nil
	case len(found) == 0 || arg == "":
		return "", fmt.Errorf("%w: %q", pawl.ErrUnknownRun, arg)
	case len(found) > 1:
		return "", fmt.Errorf("%w %q: %s", errAmbiguousRun, arg, strings.Join(found[:min(len(found), 5)], ", "))
	}
	return found[0], nil
}
