package protocol

import "slices"

// circles finds records that answer each other for ever, without a clock: each of them, consumed in a state, changes
// nothing in any database or process, but makes a function publish the next one.
type circles struct {
	answers []answer
}

type answer struct {
	to   record // the consumed one
	with record
	by   step
}

// note records the events of a step that changed only Kafka.
func (c *circles) note(from *state, by step, to *state, published []event) {
	if by.act != consumes || by.killed > 0 || len(published) == 0 {
		return
	}
	before, after := *from, *to
	before.kafka, after.kafka = kafka{}, kafka{}
	if before != after {
		return
	}
	for _, e := range published {
		if e.topic < deadLetter {
			c.answers = append(c.answers, answer{record(by.number), e.topic.record(e.number), by})
		}
	}
}

// find returns the steps of a circle; nil: there is none.
func (c *circles) find() []taken {
	for {
		left := slices.DeleteFunc(slices.Clone(c.answers), func(a answer) bool { return !c.answered(a.with) })
		if len(left) == 0 {
			return nil
		}
		if len(left) == len(c.answers) {
			break
		}
		c.answers = left
	}
	var round []taken
	for _, a := range c.answers {
		round = append(round, taken{by: a.by})
	}
	return append(round, taken{by: step{act: goesRound}})
}

func (c *circles) answered(r record) bool {
	return slices.ContainsFunc(c.answers, func(a answer) bool { return a.to == r })
}
