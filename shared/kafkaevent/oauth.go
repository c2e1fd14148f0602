package kafkaevent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/IBM/sarama"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/jobweaver/jobweaver/shared/shortlived"
	"github.com/jobweaver/jobweaver/shared/tlsfiles"
)

// tokenPatience is how long the endpoint of tokens may take.
const tokenPatience = 10 * time.Second

// tokens gives each connection the token that is valid then. It implements sarama's AccessTokenProvider.
type tokens struct {
	source     oauth2.TokenSource
	extensions map[string]string
}

// Token implements sarama.AccessTokenProvider.
func (t tokens) Token() (*sarama.AccessToken, error) {
	token, err := t.source.Token()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", sarama.ErrSASLAuthenticationFailed, err) // sarama drops errors that it does not know
	}
	return &sarama.AccessToken{Token: token.AccessToken, Extensions: t.extensions}, nil
}

func (c Config) tokens() (tokens, error) {
	t := tokens{extensions: map[string]string{}}
	for _, pair := range c.SASLExtensions {
		name, value, found := strings.Cut(pair, "=")
		if !found || name == "" || name == sarama.SASLExtKeyAuth {
			return t, fmt.Errorf("KAFKA_SASL_EXTENSIONS: %q is not of the form name=value", pair)
		}
		t.extensions[name] = value
	}
	var err error
	t.source, err = c.tokenSource()
	return t, err
}

func (c Config) tokenSource() (oauth2.TokenSource, error) {
	given := 0
	for _, setting := range []string{c.SASLTokenFile, c.SASLTokenCommand, c.SASLTokenURL} {
		if setting != "" {
			given++
		}
	}
	switch {
	case given != 1:
		return nil, errors.New("KAFKA_SASL_MECHANISM: OAUTHBEARER needs one of KAFKA_SASL_TOKEN_FILE, " +
			"KAFKA_SASL_TOKEN_COMMAND and KAFKA_SASL_TOKEN_URL")
	case c.SASLTokenFile != "":
		return printed{"KAFKA_SASL_TOKEN_FILE", shortlived.Source{File: c.SASLTokenFile}}, nil
	case c.SASLTokenCommand != "":
		return printed{"KAFKA_SASL_TOKEN_COMMAND", shortlived.Source{Command: c.SASLTokenCommand}}, nil
	}
	at, err := url.Parse(c.SASLTokenURL)
	if err != nil || at.Host == "" || at.Scheme != "https" && !tlsfiles.IsLoopback(at.Hostname()) {
		return nil, errors.New("KAFKA_SASL_TOKEN_URL: must be an https URL")
	}
	if _, err := c.saslPassword(); err != nil {
		return nil, err
	}
	return oauth2.ReuseTokenSource(nil, endpoint{c}), nil // it asks again shortly before a token expires
}

// printed has its tokens from a file or a command.
type printed struct {
	setting string
	source  shortlived.Source
}

// Token implements oauth2.TokenSource.
func (p printed) Token() (*oauth2.Token, error) {
	token, err := p.source.Read(context.Background())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.setting, err)
	}
	return &oauth2.Token{AccessToken: token}, nil
}

// endpoint has its tokens from KAFKA_SASL_TOKEN_URL, with the name and password as the client's.
type endpoint struct{ cfg Config }

// Token implements oauth2.TokenSource.
func (e endpoint) Token() (*oauth2.Token, error) {
	password, err := e.cfg.saslPassword()
	if err != nil {
		return nil, err
	}
	client := clientcredentials.Config{
		ClientID: e.cfg.SASLUsername, ClientSecret: password, TokenURL: e.cfg.SASLTokenURL, Scopes: e.cfg.SASLScopes,
	}
	ctx := context.WithValue(context.Background(), oauth2.HTTPClient, &http.Client{Timeout: tokenPatience})
	token, err := client.Token(ctx)
	if err != nil {
		return nil, fmt.Errorf("KAFKA_SASL_TOKEN_URL: %w", err)
	}
	return token, nil
}
