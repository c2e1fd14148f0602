package accesscmd

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
	"github.com/jobweaver/jobweaver/shared/sealing"
)

// NewKeyset makes the command keyset.
func NewKeyset() *cobra.Command {
	all := &cobra.Command{
		Use:   "keyset",
		Short: "Manage the keys that encrypt the data of jobs, in the file " + sealing.Setting,
		Long: `Manage the keys that encrypt the data of jobs, in the file ` + sealing.Setting + ` or --file.
Rotation: add a key, wait until every process has the file, promote it, and remove the old
one when no stored data is sealed with it any more.`,
	}
	file := all.PersistentFlags().String("file", "", "the file, if not "+sealing.Setting)
	path := func() (string, error) {
		if name := cmp.Or(*file, os.Getenv(sealing.Setting)); name != "" {
			return name, nil
		}
		return "", cli.Usage("which file? %s is not set, nor is --file", sealing.Setting)
	}
	all.AddCommand(&cobra.Command{
		Use: "create", Args: cli.Exactly(0), Short: "Create the file, with one key",
		RunE: func(cmd *cobra.Command, _ []string) error {
			name, err := path()
			if err != nil {
				return err
			}
			keys, err := sealing.CreateKeyset(name)
			return errors.Join(err, listKeys(cmd, keys, err))
		},
	})
	verb := func(use, short string, args cobra.PositionalArgs, do func(*sealing.Keyset, uint32) error) {
		all.AddCommand(&cobra.Command{
			Use: use, Args: args, Short: short,
			RunE: func(cmd *cobra.Command, given []string) error {
				name, err := path()
				if err != nil {
					return err
				}
				keys, err := sealing.OpenKeyset(name)
				if err != nil {
					return err
				}
				id := uint64(0)
				if len(given) > 0 {
					if id, err = strconv.ParseUint(given[0], 10, 32); err != nil {
						return cli.Usage("%q is no key: jobweaver keyset list shows them", given[0])
					}
				}
				err = do(keys, uint32(id))
				return errors.Join(err, listKeys(cmd, keys, err))
			},
		})
	}
	verb("add", "Add a key, which only decrypts until it is promoted", cli.Exactly(0),
		func(k *sealing.Keyset, _ uint32) error { _, err := k.Add(); return err })
	verb("promote KEY", "Encrypt new data with a key", cli.Exactly(1), (*sealing.Keyset).Promote)
	verb("remove KEY", "Remove a key: data that is still encrypted with it is lost", cli.Exactly(1),
		(*sealing.Keyset).Remove)
	verb("list", "List the keys", cli.Exactly(0), func(*sealing.Keyset, uint32) error { return nil })
	return all
}

func listKeys(cmd *cobra.Command, keyset *sealing.Keyset, failed error) error {
	if failed != nil {
		return nil
	}
	keys, err := keyset.Keys()
	for _, key := range keys {
		does := "opens"
		if key.Primary {
			does = "opens and seals"
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%d\t%s\n", key.ID, does)
	}
	return err
}
