// Package accesscmd has the commands that create and manage keys: API keys, webhook secrets and the keyset.
package accesscmd

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/keystore"
	"github.com/jobweaver/jobweaver/shared/apikey"
	"github.com/jobweaver/jobweaver/shared/client"
)

// NewKeys makes the command keys.
func NewKeys() *cobra.Command {
	return cli.Group("keys", "Manage API keys", newKeysCreate(), newKeysList(),
		cli.Verb("revoke ID", "Revoke a key", 1, func(cmd *cobra.Command, args []string) error {
			return cli.Call(cmd, http.MethodDelete, cli.Path("keys", args[0]), nil, func(w io.Writer, key client.Key) error {
				_, err := fmt.Fprintf(w, "%s is revoked\n", cli.Line(key.KeyID))
				return err
			})
		}),
		newKeysRotate(),
		cli.Verb("me", "Show the owner and the roles of JOBWEAVER_API_KEY", 0, func(cmd *cobra.Command, _ []string) error {
			return cli.Show(cmd, cli.Path("me"), func(w io.Writer, me client.Me) error {
				_, err := fmt.Fprintf(w, "%s  owner %v  roles %s  installation %v\n",
					cli.Line(me.Actor), cli.Line(cmp.Or(me.OwnerID, "-")), cli.Line(strings.Join(me.Roles, ",")),
					me.Installation)
				return err
			})
		}),
		cli.Verb("generate", "Print a new key that no database has: for BOOTSTRAP_API_KEY", 0,
			func(cmd *cobra.Command, _ []string) error {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), apikey.New().Reveal())
				return err
			}),
		newKeysBootstrap())
}

func newKeysCreate() *cobra.Command {
	var roles, types, queues []string
	var owner string
	var lives time.Duration
	cmd := cli.Verb("create NAME", "Make a key, and print it this once", 1, func(cmd *cobra.Command, args []string) error {
		body := map[string]any{"name": args[0], "roles": roles}
		if owner != "" {
			body["ownerId"] = owner
		}
		if len(types) > 0 {
			body["workTypes"] = types
		}
		if len(queues) > 0 {
			body["workQueues"] = queues
		}
		if lives > 0 {
			body["expiresAt"] = time.Now().Add(lives).UTC()
		}
		return cli.Call(cmd, http.MethodPost, cli.Path("keys"), body, showNewKey)
	})
	cmd.Flags().StringSliceVar(&roles, "role", []string{"submit", "read"}, "submit, read, operate, work or admin")
	cmd.Flags().StringSliceVar(&types, "work-type", nil, "with --role work: only attempts of this job type; repeatable")
	cmd.Flags().StringSliceVar(&queues, "work-queue", nil, "with --role work: only attempts of this queue; repeatable")
	cmd.Flags().StringVar(&owner, "owner", "", "the owner of the key; only for admins of the installation")
	cmd.Flags().DurationVar(&lives, "expires-in", 0,
		"lifetime of the key; 0: the longest that the gateway permits, by default for ever")
	return cmd
}

// showNewKey prints only the key, so that it can be piped to a secret store.
func showNewKey(w io.Writer, key client.Key) error {
	_, err := fmt.Fprintln(w, cli.Line(key.Key))
	return err
}

func newKeysList() *cobra.Command {
	var owner, cursor string
	cmd := cli.Verb("list", "List keys, the revoked ones too", 0, func(cmd *cobra.Command, _ []string) error {
		query := url.Values{}
		for name, value := range map[string]string{"ownerId": owner, "cursor": cursor} {
			if value != "" {
				query.Set(name, value)
			}
		}
		return cli.Show(cmd, cli.Path("keys")+"?"+query.Encode(), func(w io.Writer, page struct {
			Keys       []client.Key
			NextCursor *string
		}) error {
			defer cli.MoreOf(cmd, page.NextCursor)
			head := "KEY\tOWNER\tROLES\tEXPIRES\tLAST USED\tNAME"
			return cli.Table(w, head, "no keys", len(page.Keys), func(i int) []any {
				k := page.Keys[i]
				ends := minute(k.ExpiresAt)
				if k.RevokedAt != nil {
					ends = "revoked"
				}
				return []any{k.KeyID, cmp.Or(k.OwnerID, "-"), strings.Join(k.Roles, ","), ends, minute(k.LastUsedAt), k.Name}
			})
		})
	})
	cmd.Flags().StringVar(&owner, "owner", "", "only keys of this owner")
	cmd.Flags().StringVar(&cursor, "cursor", "", "the next page: the cursor that the previous page printed")
	return cmd
}

// minute prints an instant in UTC, to the minute, so that a list of keys fits on a line.
func minute(instant *time.Time) string {
	if instant == nil {
		return "-"
	}
	return instant.UTC().Format("2006-01-02 15:04Z")
}

func newKeysRotate() *cobra.Command {
	var overlap time.Duration
	cmd := cli.Verb("rotate ID", "Replace a key, and print the new one this once", 1,
		func(cmd *cobra.Command, args []string) error {
			body := map[string]any{"overlapSeconds": int64(overlap.Seconds())}
			return cli.Call(cmd, http.MethodPost, cli.Path("keys", args[0], "rotate"), body, showNewKey)
		})
	cmd.Flags().DurationVar(&overlap, "overlap", 24*time.Hour, "how long the old key stays valid")
	return cmd
}

func newKeysBootstrap() *cobra.Command {
	var name string
	cmd := cli.Verb("bootstrap", "Write an admin key of the installation into the database, and print it this once", 0,
		func(cmd *cobra.Command, _ []string) error {
			at, err := cli.DatabaseURL()
			if err != nil {
				return err
			}
			if at == "" {
				return cli.Usage("DATABASE_URL is not set: the gateway's database, as postgres://…/jobweaver_api")
			}
			layout, err := cli.Layout()
			if err != nil {
				return err
			}
			if layout.Schemas {
				if at, err = layout.Address(at, migrations.API); err != nil {
					return err
				}
			}
			opening, cancel := context.WithTimeout(cmd.Context(), 3*time.Second) // no migration will create the table
			defer cancel()
			store, err := apidb.Open(opening, at)
			if err != nil {
				return fmt.Errorf("is DATABASE_URL the gateway's database, after jobweaver migrate? %w", err)
			}
			defer store.Close()
			key := apikey.New()
			hash := key.Hash()
			if _, err := keystore.New(store).EnsureAdmin(cmd.Context(), key.ID(), hash[:], name); err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), key.Reveal())
			return err
		})
	cmd.Flags().StringVar(&name, "name", keystore.Bootstrap, "its name in lists")
	return cmd
}
