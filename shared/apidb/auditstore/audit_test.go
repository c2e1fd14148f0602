package auditstore_test

import (
	"fmt"
	"testing"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/auditstore"
)

func TestOldEntriesOfTheAuditLogAreForgottenAndNewOnesAreNot(t *testing.T) {
	t.Parallel()
	s := open(t)
	for i := range 10 {
		if err := s.AuditLog.Enter(t.Context(), &apidb.Audit{Actor: fmt.Sprint(i), Action: "job.read", TraceID: uuid.New()}); err != nil {
			t.Fatal(err)
		}
	}
	s.Exec(t, "UPDATE audit_log SET at = now() - interval '40 days' WHERE audit_id <= 7")
	for i, want := range []bool{true, true, false} {
		if more, err := s.AuditLog.DeleteOld(t.Context(), auditstore.MinAge, 3); err != nil || more != want {
			t.Errorf("piece %d: more: %v, %v", i, more, err)
		}
	}
	left, more, err := s.AuditLog.List(t.Context(), auditstore.Filter{Owner: apidb.Everyone, Limit: 5})
	if err != nil || more || len(left) != 3 || left[0].Actor != "9" || left[2].Actor != "7" {
		t.Errorf("there are %+v, more: %v, %v", left, more, err)
	}
}
