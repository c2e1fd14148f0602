package jobevent

import (
	"encoding/binary"
	"math/bits"
	"strings"
	"sync"
)

// RoutingKey returns a record key that Kafka maps to the given partition of a run-job topic, however many partitions
// the topic has beyond that one. So every publisher by key (our producer, a KafkaSink) puts the record into the
// partition that dispatch chose, and no function has to know how many partitions there are. On a topic with fewer
// partitions the key maps to any of them.
func RoutingKey(partition int32) string { return routingKeys()[uint32(partition)%MaxRunPartitions] }

// routingKeys finds the keys: the hash of key p is p itself, not only modulo a number. It tries four characters, and
// the hash run backwards gives the other four. A CloudEvent carries the key, so all eight characters have to be text,
// which takes some hundred tries.
var routingKeys = sync.OnceValue(func() (keys []string) {
	const signs = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
	keys = make([]string, MaxRunPartitions)
	for p := range uint32(MaxRunPartitions) {
		for n := uint32(0); keys[p] == ""; n++ {
			first := []byte{signs[n&63], signs[n>>6&63], signs[n>>12&63], signs[n>>18&63]}
			for _, hash := range [2]uint32{p, p | 1<<31} { // the sign is cleared
				second := murmur2Rest(first, hash)
				if isOf(second, signs) {
					keys[p] = string(first) + string(second)
				}
			}
		}
	}
	return keys
})

func isOf(text []byte, signs string) bool {
	for _, c := range text {
		if strings.IndexByte(signs, c) < 0 {
			return false
		}
	}
	return true
}

// PartitionOf returns the partition that Kafka's default partitioner gives a key: murmur2, sign bit cleared, modulo.
func PartitionOf(key string, partitions int32) int32 {
	return int32(murmur2([]byte(key))&0x7fffffff) % partitions
}

const (
	seed uint32 = 0x9747b28c
	m    uint32 = 0x5bd1e995
	r           = 24
)

// murmur2Rest returns the four bytes that, appended to the four bytes first, make a key with that hash.
func murmur2Rest(first []byte, hash uint32) []byte {
	back := inverse(m)
	h := hash ^ hash>>15 ^ hash>>30 // undoes h ^ h>>15
	h *= back
	h ^= h>>13 ^ h>>26 // undoes h ^ h>>13
	k := binary.LittleEndian.Uint32(first) * m
	k = (k ^ k>>r) * m
	begin := seed ^ 8     // the length of the key
	k = (begin*m^k)*m ^ h // the value that the second four bytes must contribute
	k *= back
	k ^= k >> r // its own inverse, since r is more than half of the bits
	return binary.LittleEndian.AppendUint32(nil, k*back)
}

// inverse returns the number by which an odd number has to be multiplied to give one.
func inverse(odd uint32) uint32 {
	x := odd
	for range bits.Len32(32) { // each round doubles the bits that are right
		x *= 2 - odd*x
	}
	return x
}

// murmur2 is the hash of Kafka's Java client (org.apache.kafka.common.utils.Utils.murmur2).
func murmur2(data []byte) uint32 {
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
