package jobevent

import "strconv"

// routingKeys[p] hashes to partition p, so that every publisher by key (our producer, a KafkaSink)
// puts the record where dispatch wanted it.
var routingKeys = findRoutingKeys()

// RoutingKey returns a record key that Kafka maps to the given partition of a run-job topic.
func RoutingKey(partition int32) string {
	return routingKeys[uint32(partition)%RunPartitions]
}

func findRoutingKeys() [RunPartitions]string {
	var keys [RunPartitions]string
	for found, n := 0, 0; found < RunPartitions; n++ {
		key := "p" + strconv.Itoa(n)
		partition := PartitionOf(key, RunPartitions)
		if keys[partition] == "" {
			keys[partition] = key
			found++
		}
	}
	return keys
}

// PartitionOf returns the partition that Kafka's default partitioner gives a key: murmur2, sign bit cleared, modulo.
func PartitionOf(key string, partitions int32) int32 {
	return int32(murmur2([]byte(key))&0x7fffffff) % partitions
}

// murmur2 is the hash of Kafka's Java client (org.apache.kafka.common.utils.Utils.murmur2).
func murmur2(data []byte) uint32 {
	const (
		seed uint32 = 0x9747b28c
		m    uint32 = 0x5bd1e995
		r           = 24
	)
	h := seed ^ uint32(len(data))
	for ; len(data) >= 4; data = data[4:] {
		k := uint32(data[0]) | uint32(data[1])<<8 | uint32(data[2])<<16 | uint32(data[3])<<24
		k *= m
		k ^= k >> r
		k *= m
		h = h*m ^ k
	}
	switch len(data) {
	case 3:
		h ^= uint32(data[2]) << 16
		fallthrough
	case 2:
		h ^= uint32(data[1]) << 8
		fallthrough
	case 1:
		h ^= uint32(data[0])
		h *= m
	}
	h ^= h >> 13
	h *= m
	return h ^ h>>15
}
