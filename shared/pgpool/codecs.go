package pgpool

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"
	pgxuuid "github.com/vgarvardt/pgx-google-uuid/v5"
)

// registerCodecs makes whole batches cheap to send. By default pgx puts each element of an array into an interface
// and looks up its plan, and parses each JSON value that it reads (measured: a sixth of our CPU).
func registerCodecs(m *pgtype.Map) {
	pgxuuid.Register(m) // otherwise each id goes through driver.Valuer and a string
	if t, ok := m.TypeForOID(pgtype.UUIDOID); ok {
		m.RegisterType(&pgtype.Type{Name: t.Name, OID: t.OID, Codec: rawID{t.Codec}})
	}
	for _, oid := range []uint32{pgtype.JSONOID, pgtype.JSONBOID} {
		if t, ok := m.TypeForOID(oid); ok {
			m.RegisterType(&pgtype.Type{Name: t.Name, OID: oid, Codec: rawJSON{t.Codec}})
		}
	}
	for _, oid := range []uint32{
		pgtype.UUIDArrayOID, pgtype.TextArrayOID, pgtype.JSONArrayOID, pgtype.JSONBArrayOID,
		pgtype.TimestamptzArrayOID, pgtype.Int2ArrayOID, pgtype.Int4ArrayOID, pgtype.Int8ArrayOID, pgtype.BoolArrayOID,
	} {
		t, ok := m.TypeForOID(oid)
		if !ok {
			continue
		}
		if array, ok := t.Codec.(*pgtype.ArrayCodec); ok {
			element, _ := m.TypeForOID(array.ElementType.OID) // as registered now
			m.RegisterType(&pgtype.Type{
				Name: t.Name, OID: oid, Codec: batchArray{&pgtype.ArrayCodec{ElementType: element}},
			})
		}
	}
}

// rawJSON scans JSON into a json.RawMessage as it is stored, without parsing it.
type rawJSON struct{ pgtype.Codec }

func (c rawJSON) PlanScan(m *pgtype.Map, oid uint32, format int16, target any) pgtype.ScanPlan {
	if _, ok := target.(*json.RawMessage); ok && (oid == pgtype.JSONOID || format == pgtype.TextFormatCode) {
		return scanRaw{}
	}
	return c.Codec.PlanScan(m, oid, format, target)
}

type scanRaw struct{}

func (scanRaw) Scan(src []byte, target any) error {
	to := target.(*json.RawMessage)
	*to = nil
	if src != nil {
		*to = append(make([]byte, 0, len(src)), src...)
	}
	return nil
}

// rawID scans an id into a uuid.UUID. By default pgx calls that type's own Scan with a string.
type rawID struct{ pgtype.Codec }

func (c rawID) PlanScan(m *pgtype.Map, oid uint32, format int16, target any) pgtype.ScanPlan {
	if _, ok := target.(*uuid.UUID); ok && format == pgtype.BinaryFormatCode {
		return scanID{}
	}
	return c.Codec.PlanScan(m, oid, format, target)
}

type scanID struct{}

func (scanID) Scan(src []byte, target any) error {
	to := target.(*uuid.UUID)
	if len(src) != len(to) {
		return fmt.Errorf("read an id of %d bytes", len(src)) // NULL has none
	}
	copy(to[:], src)
	return nil
}

// batchArray writes the slices that our statements take, in binary.
type batchArray struct{ *pgtype.ArrayCodec }

func (c batchArray) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	if format != pgtype.BinaryFormatCode {
		return c.ArrayCodec.PlanEncode(m, oid, format, value)
	}
	element := c.ElementType.OID
	switch value.(type) {
	case []uuid.UUID:
		if element == pgtype.UUIDOID {
			return slicePlan[uuid.UUID]{element, func(b []byte, id uuid.UUID) []byte { return append(b, id[:]...) }}
		}
	case []string:
		if element == pgtype.TextOID {
			return slicePlan[string]{element, func(b []byte, text string) []byte { return append(b, text...) }}
		}
	case []json.RawMessage:
		if element == pgtype.JSONOID {
			return slicePlan[json.RawMessage]{element, putJSON}
		}
	case []time.Time:
		if element == pgtype.TimestamptzOID {
			return slicePlan[time.Time]{element, putInstant}
		}
	case []int16:
		if element == pgtype.Int2OID {
			return slicePlan[int16]{element, func(b []byte, n int16) []byte {
				return binary.BigEndian.AppendUint16(b, uint16(n))
			}}
		}
	case []int32:
		if element == pgtype.Int4OID {
			return slicePlan[int32]{element, func(b []byte, n int32) []byte {
				return binary.BigEndian.AppendUint32(b, uint32(n))
			}}
		}
	case []int64:
		if element == pgtype.Int8OID {
			return slicePlan[int64]{element, putInt64}
		}
	case []bool:
		if element == pgtype.BoolOID {
			return slicePlan[bool]{element, putBool}
		}
	}
	return c.ArrayCodec.PlanEncode(m, oid, format, value)
}

// slicePlan writes a slice as an array of one dimension. put returns nil for an element that is NULL.
type slicePlan[T any] struct {
	element uint32
	put     func(b []byte, v T) []byte
}

// Encode is pgtype.EncodePlan's: the header of array_recv, then each element behind its length.
func (p slicePlan[T]) Encode(value any, b []byte) ([]byte, error) {
	slice := value.([]T)
	if slice == nil {
		return nil, nil
	}
	dimensions := uint32(1)
	if len(slice) == 0 {
		dimensions = 0
	}
	b = binary.BigEndian.AppendUint32(b, dimensions)
	nulls := len(b)
	b = binary.BigEndian.AppendUint32(b, 0)
	b = binary.BigEndian.AppendUint32(b, p.element)
	if len(slice) > 0 {
		b = binary.BigEndian.AppendUint32(b, uint32(len(slice)))
		b = binary.BigEndian.AppendUint32(b, 1) // the lower bound
	}
	b = slices.Grow(b, weight(value, len(slice)))
	for _, v := range slice {
		length := len(b)
		b = binary.BigEndian.AppendUint32(b, null)
		if with := p.put(b, v); with != nil {
			b = with
			binary.BigEndian.PutUint32(b[length:], uint32(len(b)-length-4))
		} else {
			binary.BigEndian.PutUint32(b[nulls:], 1)
		}
	}
	return b, nil
}

// weight returns the most bytes that a slice's elements take. A batch of JSON that grows by appending is copied five
// times (measured: 4 KiB a job of allocations).
func weight(slice any, n int) int {
	const length, fixed = 4, 16
	total := n * length
	switch slice := slice.(type) {
	case []string:
		for _, text := range slice {
			total += len(text)
		}
	case []json.RawMessage:
		for _, raw := range slice {
			total += len(raw)
		}
	default:
		total += n * fixed
	}
	return total
}

const null = ^uint32(0) // the length of an element that is NULL

func putJSON(b []byte, raw json.RawMessage) []byte {
	if raw == nil {
		return nil
	}
	return append(b, raw...)
}

func putInt64(b []byte, n int64) []byte { return binary.BigEndian.AppendUint64(b, uint64(n)) }

func putBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

var postgresEpoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// putInstant writes microseconds since PostgreSQL's epoch and, as pgx does, cuts off the rest.
func putInstant(b []byte, at time.Time) []byte {
	micros := at.Unix()*1_000_000 + int64(at.Nanosecond())/1000
	return putInt64(b, micros-postgresEpoch.UnixMicro())
}
