package dev_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/local/dev"
	"github.com/jobweaver/jobweaver/shared/certtest"
	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/tlsfiles"
)

func TestTheInstallationIsReachedOverTLS(t *testing.T) {
	t.Parallel()
	ca := certtest.New(t)
	files := certtest.NewDir(t, ca, ca.Issue(t, "127.0.0.1"))
	trust, err := tlsfiles.NewClient(tlsfiles.File{Path: files.CA()}, tlsfiles.File{}, tlsfiles.File{})
	if err != nil {
		t.Fatal(err)
	}
	o := options(t, newFolder(t))
	o.TLS = funchost.TLS{CertFile: files.Cert(), KeyFile: files.Key()}
	err = dev.Run(t.Context(), o, func(ctx context.Context, url string) error {
		way := trust.Transport(nil)
		defer way.CloseIdleConnections()
		c := client.New(url, "", client.WithTransport(way))
		accepted, err := c.SubmitJSON(ctx, []byte(`{"jobType":"SIMULATION","payload":{"steps":[{"type":"LOG","message":"hi"}]}}`))
		if err != nil || !strings.HasPrefix(url, "https://") {
			t.Errorf("%s: %v", url, err)
			return err
		}
		job, err := c.Get(ctx, accepted.JobID, 30*time.Second)
		if err == nil && job.Status != "COMPLETED" {
			t.Errorf("the job is %s", job.Status)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
