package mailcatch

import (
	"slices"
	"strconv"
	"sync"
	"time"
)

// The limits of what is kept. Above them the oldest messages are dropped.
const (
	maxMessages = 1000
	maxBytes    = 64 << 20
)

// envelope has the addresses of the SMTP commands, which a message's headers need not contain.
type envelope struct {
	From string   `json:"from"`
	To   []string `json:"to"`
}

// caught is a message in the box.
type caught struct {
	ID         string    `json:"id"`
	ReceivedAt time.Time `json:"receivedAt"`
	Envelope   envelope  `json:"envelope"`
	Size       int       `json:"size"`
	summary

	raw []byte
}

func (m *caught) read() *parsed {
	_, p := parse(m.raw)
	return p
}

// box keeps the last messages.
type box struct {
	messages, bytes int // at most

	mu   sync.Mutex
	last int
	list []*caught // oldest first
	size int
}

func newBox(messages, bytes int) *box { return &box{messages: messages, bytes: bytes} }

func (b *box) put(e envelope, raw []byte, at time.Time) {
	parsed, _ := parse(raw)
	m := &caught{ReceivedAt: at.UTC(), Envelope: e, Size: len(raw), summary: parsed, raw: raw}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last++
	m.ID = strconv.Itoa(b.last)
	b.list = append(b.list, m)
	b.size += len(raw)
	gone := 0
	for ; len(b.list)-gone > b.messages || b.size > b.bytes; gone++ {
		b.size -= b.list[gone].Size
	}
	b.list = slices.Delete(b.list, 0, gone)
}

// all returns the messages, newest first.
func (b *box) all() []*caught {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := slices.Clone(b.list)
	slices.Reverse(list)
	return list
}

// find returns the message with an id; nil if there is none.
func (b *box) find(id string) *caught {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.IndexFunc(b.list, func(m *caught) bool { return m.ID == id })
	if i < 0 {
		return nil
	}
	return b.list[i]
}

func (b *box) clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.list, b.size = nil, 0
}
