package localkafka

import (
	"context"

	"github.com/twmb/franz-go/pkg/kfake"
)

// Trim runs one pass of the trimmer over a cluster.
func Trim(cluster *kfake.Cluster, lookBack int64) error {
	return (&trimmer{cluster: cluster, lookBack: lookBack}).pass(context.Background())
}
