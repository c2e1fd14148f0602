package gateway

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/functions/gateway/access"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/jobview"
)

type webhookSecretsBody struct {
	OwnerID *string  `json:"ownerId"`
	End     []string `json:"end"`
	Call    []string `json:"call"`
}

// webhookSecrets is GET /api/webhook-secrets: the keys by which the owner's receivers verify.
func (f *Function) webhookSecrets(c *gin.Context) error {
	q := edge.Query{Values: c.Request.URL.Query()}
	asked := q.Checked("ownerId", jobspec.CheckOwner)
	if err := q.Close("ownerId"); err != nil {
		return err
	}
	p := access.Of(c.Request.Context())
	owner := p.Owner
	if asked != "" && asked != owner {
		if !edge.IsInstallation(c) {
			return apierror.New(apierror.Forbidden, "only an admin of the installation sees another owner's webhook secrets")
		}
		owner = asked
	}
	if !p.Everyone {
		entry := newEntry(c, p, "webhook-secrets.read")
		entry.Owner = owner // who sees that its keys were read
		if err := f.store.auditLog.Enter(c.Request.Context(), entry); err != nil {
			return err
		}
	}
	c.JSON(http.StatusOK, webhookSecretsBody{jobview.Given(owner), f.ends.Secrets(owner), f.calls.Secrets(owner)})
	return nil
}
