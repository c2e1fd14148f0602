package changes

import (
	"testing"

	"github.com/jobweaver/jobweaver/shared/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }
