package main

import (
	"cmp"
	"crypto/x509"
	"errors"
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

const defaultURL = "http://localhost:8080"

func api(cmd *cobra.Command) *client.Client {
	key, err := apiKey()
	if err != nil {
		return client.New(gatewayURL(cmd), "", client.WithTransport(noWay{err}), client.WithRetries(0))
	}
	return reach(gatewayURL(cmd), key)
}

// badURL says what is wrong with the gateway's address; nil: nothing.
func badURL(base string) error {
	at, err := url.Parse(base)
	if err == nil && (at.Scheme == "http" || at.Scheme == "https") && at.Host != "" {
		return nil
	}
	if !strings.Contains(base, "://") {
		return usage("the gateway's URL begins with http:// or https://, as http://%s", base)
	}
	return usage("%q is not the URL of a gateway, such as %s", base, defaultURL)
}

// gatewayURL is --url, or JOBWEAVER_URL, or the local gateway.
func gatewayURL(cmd *cobra.Command) string {
	return cmp.Or(cmd.Flag("url").Value.String(), os.Getenv("JOBWEAVER_URL"), defaultURL)
}

// apiKey is the key of the setting or of the file that it names; a line end belongs to neither.
func apiKey() (string, error) {
	key, file := os.Getenv("JOBWEAVER_API_KEY"), os.Getenv("JOBWEAVER_API_KEY_FILE")
	if key == "" && file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", usage("JOBWEAVER_API_KEY_FILE: %w", err)
		}
		key = string(text)
	}
	return strings.TrimSpace(key), nil
}

// advice is what to do about an error that says only what the other side saw.
func advice(err error) string {
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
		return "\nJOBWEAVER_URL says where the gateway is, if not at http://localhost:8080"
	}
	return ""
}

// reach is the API at an address that is known by JOBWEAVER_CA_FILE, where that is set, and shown JOBWEAVER_CERT_FILE
// where it asks for one.
func reach(base, key string) *client.Client {
	file := func(setting string) tlsfiles.File { return tlsfiles.File{Setting: setting, Path: os.Getenv(setting)} }
	trust, err := tlsfiles.NewClient(
		file("JOBWEAVER_CA_FILE"), file("JOBWEAVER_CERT_FILE"), file("JOBWEAVER_KEY_FILE"))
	if err == nil {
		err = badURL(base)
	}
	if err != nil {
		return client.New(base, key, client.WithTransport(noWay{err}), client.WithRetries(0))
	}
	// A command tells that the gateway is away before it tries again: Client.Through does that.
	return client.New(base, key, client.WithTransport(trust.Transport(nil)), client.WithRetries(0))
}

// noWay says why there is none.
type noWay struct{ error }

func (w noWay) RoundTrip(*http.Request) (*http.Response, error) { return nil, w.error }
