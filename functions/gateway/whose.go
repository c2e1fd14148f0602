package gateway

import (
	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/functions/gateway/access"
	"github.com/jobweaver/jobweaver/shared/apidb"
)

// installation tells whether the request is from who looks after all of it: its admin who acts for no owner, or
// anybody, where authentication is off.
func installation(c *gin.Context) bool {
	return access.Of(c.Request.Context()).May(access.Installation)
}

// widest is whose, where the installation sees all owners' as well: numbers, controls, workers.
func widest(c *gin.Context) apidb.Owner {
	if installation(c) {
		return apidb.Everyone
	}
	return whose(c)
}
