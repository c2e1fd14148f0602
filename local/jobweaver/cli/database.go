package cli

import (
	"errors"

	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/funchost/envsettings"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/secret"
)

// DatabaseURL returns DATABASE_URL, or pgpool's address of its file, with its password; empty: neither is set.
func DatabaseURL() (string, error) {
	var own struct {
		URL secret.Text `envconfig:"DATABASE_URL" infile:"file:"` // pgpool.InFile
	}
	var more pgpool.Settings
	if err := errors.Join(envsettings.Load(&own), envsettings.Load(&more)); err != nil {
		return "", err
	}
	return more.Complete(own.URL.Reveal())
}

// Layout returns where the installation has its tables, as INSTALLATION and DATABASE_SCHEMAS set it.
func Layout() (layout migrations.Layout, err error) {
	if err := envsettings.Load(&layout); err != nil {
		return layout, err
	}
	return layout, layout.Installation.Check()
}
