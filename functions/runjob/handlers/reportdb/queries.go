package reportdb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"

	"github.com/goccy/go-yaml"
	"github.com/jackc/pgx/v5"
)

// Query is a query that a report may name.
type Query struct {
	SQL         string            `yaml:"sql"` // one statement, with parameters as @name and the job's owner as @owner
	Description string            `yaml:"description"`
	Parameters  map[string]string `yaml:"parameters"` // the type of each parameter: see Types

	text  string   // SQL with numbered parameters
	names []string // of the parameters, by number
}

// ownerName is the parameter for the job's owner, which a request cannot set.
const ownerName = "owner"

var (
	queryName     = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)
	parameterName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)
)

// ReadQueries reads the file of queries, in YAML or JSON: each under its name.
func ReadQueries(path string) (map[string]*Query, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parseQueries(text)
}

// parseQueries parses the text of that file.
func parseQueries(text []byte) (map[string]*Query, error) {
	var queries map[string]*Query
	text = bytes.TrimPrefix(text, []byte("\ufeff")) // as some editors of Windows write it
	if err := yaml.UnmarshalWithOptions(text, &queries, yaml.Strict()); err != nil {
		return nil, errors.New(yaml.FormatError(err, false, false))
	}
	for _, name := range slices.Sorted(maps.Keys(queries)) {
		if !queryName.MatchString(name) {
			return nil, fmt.Errorf("%q is not a query's name: letters, digits, dots, - and _", name)
		}
		if err := queries[name].prepare(); err != nil {
			return nil, fmt.Errorf("query %s: %w", name, err)
		}
	}
	return queries, nil
}

// prepare finds the parameters in the SQL. The SQL must use all declared parameters and no others.
func (q *Query) prepare() error {
	if q == nil || q.SQL == "" {
		return errors.New("it has no sql")
	}
	places := pgx.StrictNamedArgs{}
	for name, kind := range q.Parameters {
		if name == ownerName {
			return errors.New("parameter owner: @owner is the job's owner and must not be declared")
		}
		if !parameterName.MatchString(name) {
			return fmt.Errorf("%q is not a parameter's name", name)
		}
		if _, known := types[kind]; !known {
			return fmt.Errorf("parameter %s: there is no type %q, only %v", name, kind, Types())
		}
		places[name] = name
	}
	_, used, err := pgx.NamedArgs{ownerName: ownerName}.RewriteQuery(context.Background(), nil, q.SQL, nil)
	if err != nil {
		return err
	}
	if slices.Contains(used, any(ownerName)) { // a strict named argument that the SQL lacks is an error
		places[ownerName] = ownerName
	}
	text, names, err := places.RewriteQuery(context.Background(), nil, q.SQL, nil)
	if err != nil {
		return err
	}
	q.text = text
	for _, name := range names {
		q.names = append(q.names, name.(string))
	}
	return nil
}
