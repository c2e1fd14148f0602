package reportstore

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/encrypt"
)

const (
	amazon = "s3.amazonaws.com" // the client uses the endpoint of the region instead
	tries  = 3                  // for each request
)

// bucket is a bucket of Amazon S3 or of another store with the same protocol.
type bucket struct {
	client    *minio.Client
	transport *http.Transport
	name      string
	prefix    string
	sealed    encrypt.ServerSide // nil: the bucket's default
}

// parameters are the parameters of a bucket's address.
type parameters struct {
	values url.Values
	err    error
}

func (p *parameters) text(name string) string {
	value := p.values.Get(name)
	p.values.Del(name)
	return value
}

func (p *parameters) flag(name string) bool {
	text := p.text(name)
	if text == "" {
		return false
	}
	set, err := strconv.ParseBool(text)
	if err != nil {
		p.err = errors.Join(p.err, fmt.Errorf("its %s must be true or false", name))
	}
	return set
}

// end returns the error of an invalid or unknown parameter.
func (p *parameters) end() error {
	for name := range p.values {
		return fmt.Errorf("it has no parameter %q", name)
	}
	return p.err
}

func openBucket(u *url.URL) (*bucket, error) {
	p := &parameters{values: u.Query()}
	b := &bucket{name: u.Host, prefix: p.text("prefix")}
	if b.prefix != "" && !strings.HasSuffix(b.prefix, "/") {
		return nil, errors.New("its prefix must end with a slash")
	}
	endpoint, plain, err := endpointOf(
		cmp.Or(p.text("endpoint"), os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL")))
	if err != nil {
		return nil, err
	}
	plain = p.flag("disable_https") || plain
	if b.transport, err = minio.DefaultTransport(!plain); err != nil {
		return nil, err
	}
	options := &minio.Options{
		Region:     cmp.Or(p.text("region"), os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION")),
		Creds:      keys(p.text("profile"), p.flag("anonymous")),
		Secure:     !plain,
		Transport:  b.transport,
		MaxRetries: tries,
	}
	switch {
	case p.flag("use_path_style"):
		options.BucketLookup = minio.BucketLookupPath
	case endpoint != amazon:
		options.BucketLookup = minio.BucketLookupDNS
	}
	dualstack, accelerate := p.flag("dualstack"), p.flag("accelerate")
	b.sealed, err = sealing(p.text("ssetype"), p.text("kmskeyid"))
	if err := errors.Join(err, p.end()); err != nil {
		return nil, err
	}
	if endpoint == amazon && options.Region == "" {
		return nil, errors.New("it needs a region, as s3://bucket?region=eu-central-1, or AWS_REGION")
	}
	if b.client, err = minio.New(endpoint, options); err != nil {
		return nil, err
	}
	b.client.SetS3EnableDualstack(dualstack)
	if accelerate {
		b.client.SetS3TransferAccelerate("s3-accelerate.amazonaws.com")
	}
	return b, nil
}

// endpointOf returns the host of an endpoint, which is a URL or a host and port, and whether it is used without TLS.
func endpointOf(address string) (host string, plain bool, err error) {
	switch {
	case address == "":
		return amazon, false, nil
	case !strings.Contains(address, "://"):
		return address, false, nil
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") != "" {
		return "", false, errors.New("its endpoint must be of the form https://host:port")
	}
	return u.Host, u.Scheme == "http", nil
}

// keys returns the credentials that Amazon's own programs would use: from the environment, from their files (with
// single sign-on), or by the role of the pod, the task or the machine.
func keys(profile string, anonymous bool) *credentials.Credentials {
	if anonymous {
		return credentials.NewStatic("", "", "", credentials.SignatureAnonymous)
	}
	from := []credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{Profile: profile}}
	if profile != "" {
		from = from[1:] // a profile that is named must be used
	}
	if off, _ := strconv.ParseBool(os.Getenv("AWS_EC2_METADATA_DISABLED")); !off {
		from = append(from, &credentials.IAM{})
	}
	return credentials.NewChainCredentials(from)
}

// sealing returns how the store shall encrypt the files.
func sealing(kind, key string) (encrypt.ServerSide, error) {
	switch {
	case kind == "" && key == "":
		return nil, nil
	case kind == "AES256" && key == "":
		return encrypt.NewSSE(), nil
	case kind == "aws:kms" || kind == "":
		return encrypt.NewSSEKMS(key, nil)
	}
	return nil, errors.New("its ssetype must be AES256, or aws:kms with a kmskeyid")
}

func (b *bucket) close() { b.transport.CloseIdleConnections() }
