package cli

import (
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/tlsfiles"
)

// DefaultURL is the address of the gateway on this machine.
const DefaultURL = "http://localhost:8080"

// API returns a client of the gateway with the key of the environment. If a setting is invalid, each request returns
// that error.
func API(cmd *cobra.Command) *client.Client {
	key, err := apiKey()
	if err != nil {
		return client.New(DefaultURL, "", client.WithTransport(noWay{err}), client.WithRetries(0))
	}
	return NewClient(GatewayURL(cmd), key)
}

// badURL returns what is wrong with the gateway's address.
func badURL(base string) error {
	at, err := url.Parse(base)
	if err == nil && (at.Scheme == "http" || at.Scheme == "https") && at.Host != "" {
		return nil
	}
	if !strings.Contains(base, "://") {
		return Usage("the gateway's URL begins with http:// or https://, as http://%s", base)
	}
	return Usage("%q is not the URL of a gateway, such as %s", base, DefaultURL)
}

// GatewayURL returns --url, or JOBWEAVER_URL, or the address of the local gateway.
func GatewayURL(cmd *cobra.Command) string {
	return cmp.Or(cmd.Flag("url").Value.String(), os.Getenv("JOBWEAVER_URL"), DefaultURL)
}

// apiKey returns the key from the setting, or from the file that the setting names. A line end is not part of the key.
func apiKey() (string, error) {
	key, file := os.Getenv("JOBWEAVER_API_KEY"), os.Getenv("JOBWEAVER_API_KEY_FILE")
	if key == "" && file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", Usage("JOBWEAVER_API_KEY_FILE: %w", err)
		}
		key = string(plainText(text))
	}
	return strings.TrimSpace(key), nil
}

// Advice returns what to do about an error whose text only describes what went wrong at the server.
func Advice(err error) string {
	var refused *client.Error
	var unknown x509.UnknownAuthorityError
	var asked *url.Error
	var denied *pgconn.PgError
	switch {
	case errors.As(err, &refused) && refused.Status == http.StatusUnauthorized:
		if key, _ := apiKey(); key == "" {
			return "\nset JOBWEAVER_API_KEY, or JOBWEAVER_API_KEY_FILE; the first key is made by jobweaver keys bootstrap, " +
				"or by jobweaver dev (admin.key in its folder)"
		}
		return "\nthe key in JOBWEAVER_API_KEY is mistyped, expired or revoked, or another installation's"
	case refused != nil && refused.TraceID != "":
		return "\ntrace id " + refused.TraceID
	case refused != nil && refused.ErrorCode == "" && strings.Contains(refused.Message, "client certificate"):
		return "\nJOBWEAVER_CERT_FILE and JOBWEAVER_KEY_FILE name one"
	case errors.As(err, &denied) && denied.Code == "42501": // insufficient privilege
		return "\nthe user of DATABASE_URL may not do this: " +
			"migrate takes the databases' owner, keys bootstrap the gateway's role"
	case errors.As(err, &unknown):
		return "\nJOBWEAVER_CA_FILE names a file of the CAs that are trusted"
	case errors.As(err, &asked) && errors.Is(err, syscall.ECONNREFUSED):
		return "\nset JOBWEAVER_URL if the gateway is not at http://localhost:8080"
	}
	return ""
}

// NewClient makes a client of the gateway at base. It verifies the gateway by JOBWEAVER_CA_FILE, if that is set, and
// presents JOBWEAVER_CERT_FILE if the gateway requests a client certificate.
func NewClient(base, key string) *client.Client {
	file := func(setting string) tlsfiles.File { return tlsfiles.File{Setting: setting, Path: os.Getenv(setting)} }
	trust, err := tlsfiles.NewClient(
		file("JOBWEAVER_CA_FILE"), file("JOBWEAVER_CERT_FILE"), file("JOBWEAVER_KEY_FILE"))
	if err == nil {
		err = badURL(base)
	}
	if err != nil { // of a URL of no gateway, no request could be made
		return client.New(DefaultURL, key, client.WithTransport(noWay{err}), client.WithRetries(0))
	}
	// Without retries: commands print that the gateway cannot be reached before they try again, with Client.Through.
	return client.New(base, key, client.WithTransport(trust.Transport(nil)), client.WithRetries(0))
}

// noWay is a transport that fails each request.
type noWay struct{ error }

func (w noWay) RoundTrip(*http.Request) (*http.Response, error) { return nil, w.error }

// Retrying prints that the gateway cannot be reached and that the command tries again.
func Retrying(cmd *cobra.Command) func(error) {
	return func(err error) {
		fmt.Fprintln(cmd.ErrOrStderr(), "the gateway is away, trying again: "+Line(err.Error()))
	}
}
