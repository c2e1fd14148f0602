package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// serverPatience is how long a start waits for a server that does not answer yet.
const serverPatience = time.Minute

// addresses has the address of each set's database, by the set's name.
type addresses map[string]string

// ofFunction returns the address of a function's database; empty: it has none.
func (a addresses) ofFunction(name string) string {
	set, _ := setOf(name)
	return a[set.Name]
}

// Databases returns what the environment names for serve: the layout, the address of each set's database, by the name
// of the set, and whether its user is that of DATABASE_URL, which takes the role of the service.
func Databases() (layout migrations.Layout, at map[string]string, acts map[string]bool, err error) {
	s, err := loadSettings()
	if err != nil {
		return layout, nil, nil, err
	}
	acts = map[string]bool{}
	var first []string // of each set, a function that uses its database
	for _, set := range s.layout.Sets() {
		acts[set.Name], first = s.of(set.Name) == "", append(first, set.Functions[0])
	}
	all, err := places(s, first)
	return s.layout, all, acts, err
}

// places returns the addresses of the databases. One that is not given is on the server of DATABASE_URL.
func places(s Settings, chosen []string) (addresses, error) {
	all := addresses{}
	for _, set := range s.layout.Sets() {
		var err error
		own := s.of(set.Name)
		switch {
		case own != "" && !s.layout.Schemas:
			all[set.Name] = own
		case own != "" || s.Database.IsSet():
			all[set.Name], err = s.layout.Address(cmp.Or(own, s.Database.Reveal()), set)
		}
		if err != nil {
			return nil, fmt.Errorf("DATABASE_URL: %w", err)
		}
	}
	for _, name := range chosen {
		if set, uses := setOf(name); uses && all[set.Name] == "" {
			return nil, errors.New("DATABASE_URL: is not set: a server, as postgres://user:password@host:5432/postgres")
		}
	}
	return all, nil
}

// migrate makes the databases on the server of DATABASE_URL, or schemas in its database, and brings them up to date.
// Why: docs/decisions/databases.md#three-databases-or-three-schemas-of-one
func migrate(ctx context.Context, layout migrations.Layout, server string) error {
	if err := pgpool.AwaitServer(ctx, server, serverPatience); err != nil {
		return err
	}
	urls, err := layout.Ensure(ctx, server)
	if err != nil {
		return err
	}
	var group errgroup.Group
	for _, set := range layout.Sets() {
		group.Go(func() error {
			return migrations.Up(ctx, urls.Of(set.Functions[0]), set, func(migration string) {
				telemetry.Logger(ctx).InfoContext(ctx, "migrating", "database", set.Database(), "migration", migration)
			})
		})
	}
	return group.Wait()
}

// restrict gives each service a role of its own, with the rights of its functions and no others, and returns the
// addresses at which the user of DATABASE_URL takes it. A user that may make no roles keeps its own.
func restrict(ctx context.Context, s Settings, at addresses) (addresses, error) {
	own := addresses{}
	for _, set := range s.layout.Sets() {
		address := at[set.Name]
		own[set.Name] = address
		if s.of(set.Name) != "" || pgpool.IsBehind(address) {
			continue // its role is another one already, or a pooler's sessions have no other
		}
		err := grant(ctx, address, set)
		if err == nil {
			own[set.Name], err = migrations.Acting(ctx, address, set.ServiceRole())
		}
		if migrations.Refused(err) {
			telemetry.Logger(ctx).WarnContext(ctx, "the user of DATABASE_URL may make no roles: functions have all its rights",
				"database", set.Database(), "error", err)
			own[set.Name], err = address, nil
		}
		if err != nil {
			return nil, err
		}
	}
	return own, nil
}

// grant makes the role of a service. After a newer version has migrated the database, its processes may run beside this
// one and need the rights that they have granted, which include those of this version.
func grant(ctx context.Context, address string, set migrations.Set) error {
	current, newest, err := migrations.Versions(ctx, address, set)
	if err != nil || current > newest {
		return err
	}
	return migrations.GrantService(ctx, address, set, nil)
}
