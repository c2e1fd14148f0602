// Package installation names an installation that shares servers with others.
package installation

import (
	"fmt"
	"regexp"
	"strings"
)

// Name is the value of INSTALLATION. The empty one belongs to an installation without a name.
type Name string

// valid names need no quotes in PostgreSQL. A topic with one is never a topic of another installation, since no name
// has the dot or the hyphen of topics. PostgreSQL cuts names after 63 bytes, and Kafka refuses those of more than 249.
var valid = regexp.MustCompile(`^[a-z][a-z0-9_]{0,19}$`)

// Check returns an error unless the name is valid. It begins with the setting.
func (n Name) Check() error {
	switch {
	case n == "":
		return nil
	case !valid.MatchString(string(n)):
		return fmt.Errorf("INSTALLATION: %q is not a letter and up to 19 more of a-z, 0-9 and _", string(n))
	case n == "pg" || strings.HasPrefix(string(n), "pg_"):
		return fmt.Errorf("INSTALLATION: %q begins like the names that PostgreSQL keeps for itself", string(n))
	}
	return nil
}

// InPostgres returns the installation's own name for a database, a schema or a role.
func (n Name) InPostgres(name string) string {
	if n == "" {
		return name
	}
	return string(n) + "_" + name
}

// InKafka returns its own name for a topic, a consumer group or a client.
func (n Name) InKafka(name string) string {
	if n == "" {
		return name
	}
	return string(n) + "." + name
}

// FromKafka returns the name of which InKafka makes the given one; false: it is the name of another installation.
func (n Name) FromKafka(own string) (name string, is bool) {
	if n == "" {
		return own, true
	}
	return strings.CutPrefix(own, string(n)+".")
}
