package cli

import (
	"github.com/jobweaver/jobweaver/shared/funchost/envsettings"
	"github.com/jobweaver/jobweaver/shared/secret"
)

// DatabaseURL returns DATABASE_URL, or the content of the file DATABASE_URL_FILE, as in a pod; empty: neither is set.
func DatabaseURL() (string, error) {
	var own struct {
		URL secret.Text `envconfig:"DATABASE_URL"`
	}
	if err := envsettings.Load(&own); err != nil {
		return "", err
	}
	return own.URL.Reveal(), nil
}
