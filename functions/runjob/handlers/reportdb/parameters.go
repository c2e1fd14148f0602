package reportdb

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"
)

// parameterType is the type of a parameter: the values that a request may have for it, and its type in the database.
type parameterType struct {
	oid  uint32
	read func(value json.RawMessage) (text string, err error) // text is in the database's format
}

var types = map[string]parameterType{
	"text":        {pgtype.TextOID, readText},
	"integer":     {pgtype.Int4OID, readInteger(32)},
	"bigint":      {pgtype.Int8OID, readInteger(64)},
	"numeric":     {pgtype.NumericOID, readNumeric},
	"boolean":     {pgtype.BoolOID, readBoolean},
	"date":        {pgtype.DateOID, readTime("a date, as 2026-11-22", time.DateOnly)},
	"timestamptz": {pgtype.TimestamptzOID, readTime("an instant, as 2026-11-22T08:00:00Z", time.RFC3339)},
	"uuid":        {pgtype.UUIDOID, readUUID},
}

// Types returns the names of the types that a parameter may have.
func Types() []string { return slices.Sorted(maps.Keys(types)) }

// bind converts the parameters of a request and the owner of its job to texts for the database, nil for null, with
// their types. The owner of a job without one is null, which equals no row's owner.
func (q *Query) bind(owner string, given map[string]json.RawMessage) (texts [][]byte, oids []uint32, err error) {
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if _, known := q.Parameters[name]; !known {
			return nil, nil, invalid("parameters."+name, "the query has no such parameter")
		}
	}
	for _, name := range q.names {
		if name == ownerName {
			oids, texts = append(oids, pgtype.TextOID), append(texts, []byte(owner))
			if owner == "" {
				texts[len(texts)-1] = nil
			}
			continue
		}
		kind := types[q.Parameters[name]]
		value, ok := given[name]
		if !ok {
			return nil, nil, invalid("parameters."+name, "is missing")
		}
		oids = append(oids, kind.oid)
		if string(value) == "null" {
			texts = append(texts, nil)
			continue
		}
		text, err := kind.read(value)
		if err != nil {
			return nil, nil, invalid("parameters."+name, err.Error())
		}
		texts = append(texts, []byte(text))
	}
	return texts, oids, nil
}

func readText(value json.RawMessage) (text string, err error) {
	if json.Unmarshal(value, &text) != nil {
		return "", errors.New("must be a string")
	}
	if strings.ContainsRune(text, 0) {
		return "", errors.New("must not contain the character U+0000")
	}
	return text, nil
}

func readInteger(bits int) func(json.RawMessage) (string, error) {
	return func(value json.RawMessage) (string, error) {
		if _, err := strconv.ParseInt(string(value), 10, bits); err != nil {
			return "", fmt.Errorf("must be a whole number of %d bits", bits)
		}
		return string(value), nil
	}
}

var decimal = regexp.MustCompile(`^-?[0-9]{1,1000}(\.[0-9]{1,1000})?([eE][+-]?[0-9]{1,3})?$`)

func readNumeric(value json.RawMessage) (string, error) {
	text := string(value)
	if strings.HasPrefix(text, `"`) {
		_ = json.Unmarshal(value, &text) // a string without a number fails below
	}
	if !decimal.MatchString(text) {
		return "", errors.New("must be a number")
	}
	return text, nil
}

func readBoolean(value json.RawMessage) (string, error) {
	if text := string(value); text == "true" || text == "false" {
		return text, nil
	}
	return "", errors.New("must be true or false")
}

func readTime(what, layout string) func(json.RawMessage) (string, error) {
	return func(value json.RawMessage) (text string, err error) {
		if json.Unmarshal(value, &text) == nil {
			// The database has no year 0.
			if at, err := time.Parse(layout, text); err == nil && at.UTC().Year() > 0 && at.UTC().Year() < 10_000 {
				return at.UTC().Format(strings.Replace(layout, "05Z", "05.999999Z", 1)), nil
			}
		}
		return "", errors.New("must be " + what)
	}
}

func readUUID(value json.RawMessage) (text string, err error) {
	if json.Unmarshal(value, &text) == nil && len(text) == 36 {
		if id, err := uuid.Parse(text); err == nil {
			return id.String(), nil
		}
	}
	return "", errors.New("must be a UUID")
}
