package pgpool

import (
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A set of tables is in the schema public of a database of its own, or in a schema that the search_path of its address
// names. What else belongs to a whole database then has the schema in its name: channels, and the application names by
// which sessions are found.

// public is the schema of a database with one set of tables.
const public = "public"

// schemaIn returns the schema that settings of a session name; empty: there is only one, or it is not ours.
func schemaIn(settings map[string]string) string {
	schema, _, _ := strings.Cut(settings["search_path"], ",")
	if schema = strings.Trim(schema, ` "`); schema == public {
		return ""
	}
	return schema
}

// SchemaOf returns the schema of a pool; empty: its database has no other set of tables.
func SchemaOf(pool *pgxpool.Pool) string {
	switch s := sessionsOf(pool); {
	case s.ofUser:
		return ""
	case s.pooler != nil:
		return schemaIn(s.pooler.sessions)
	}
	return schemaIn(pool.Config().ConnConfig.RuntimeParams)
}

// databaseOf returns the name of a pool's database, or of its schema.
func databaseOf(cfg *pgx.ConnConfig) string {
	if schema := schemaIn(cfg.RuntimeParams); schema != "" {
		return schema
	}
	return cfg.Database
}

// Rename sets the application name of a session, by which it is found among those of its set of tables.
func Rename(settings map[string]string, name string) {
	if schema := schemaIn(settings); schema != "" {
		name += "@" + schema
	}
	settings["application_name"] = name
}

// channelIn returns the channel of a schema, as statements name it: jobweaver_due is shop_jobweaver_scheduler_due.
func channelIn(schema, channel string) string {
	if schema == "" {
		return channel
	}
	return schema + strings.TrimPrefix(channel, "jobweaver")
}
