package tlsfiles

import (
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/certtest"
	"github.com/jobweaver/jobweaver/shared/testwait"
)

// The settings are the test's own, since the expiries belong to the process.
func TestExpiriesAreThoseOfTheFilesInUse(t *testing.T) {
	t.Parallel()
	short, long := certtest.NewFor(t, time.Hour), certtest.NewFor(t, 100*time.Hour)
	pair := long.Issue(t, "127.0.0.1")
	pair.Cert = append(pair.Cert, short.PEM...) // a chain
	files := certtest.NewDir(t, &certtest.CA{PEM: append(append([]byte{}, short.PEM...), long.PEM...)}, pair)
	cert, key, ca := File{"CERT", files.Cert()}, File{"KEY", files.Key()}, File{"CA", files.CA()}
	if _, err := Server(cert, key, ca); err != nil {
		t.Fatal(err)
	}
	left := func(setting string) time.Duration { return time.Until(Expiries()[setting]).Round(time.Hour) }
	if left("CERT") != time.Hour {
		t.Errorf("a chain of which the first certificate expires in an hour lasts for %s", left("CERT"))
	}
	if left("CA") != 100*time.Hour {
		t.Errorf("CAs of which the last expires in 100 hours last for %s", left("CA"))
	}
	files.Put(t, short, long.Issue(t, "127.0.0.1"))
	testwait.Until(t, "the new files", func() bool { return left("CERT") == 100*time.Hour && left("CA") == time.Hour })
}

func TestTheExpiryOfCAsInASettingIsKnown(t *testing.T) {
	t.Parallel()
	client, err := NewClient(File{}, File{}, File{})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Trust("CAS", string(certtest.NewFor(t, 3*time.Hour).PEM)); err != nil {
		t.Fatal(err)
	}
	if left := time.Until(Expiries()["CAS"]).Round(time.Hour); left != 3*time.Hour {
		t.Errorf("they last for %s", left)
	}
}
