package view

import (
	"fmt"
	"strings"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
)

// Asked is a question that an attempt has asked a person.
type Asked struct {
	Requests []Request    `json:"requests"`
	Answer   journal.Data `json:"answer"` // null: not yet
}

// Request is a single question.
type Request struct {
	Name    string       `json:"name"` // the outside's
	Message string       `json:"message"`
	Schema  journal.Data `json:"schema"` // JSON Schema of the answer; null: any
}

// asksOf returns what an intent has asked persons.
func asksOf(e *receipt.Entry) ([]Asked, error) {
	out := []Asked{}
	for _, in := range e.Inputs {
		q, err := receipt.DecodeQuestion(in.Question)
		if err != nil {
			return nil, err
		}
		asked := Asked{Answer: in.Answer}
		for _, name := range q.Names() {
			asked.Requests = append(asked.Requests, Request{name, q.Requests[name].Message, q.Requests[name].Schema})
		}
		out = append(out, asked)
	}
	return out, nil
}

// question puts what an intent waits to be told into a line.
func question(e *receipt.Entry) (string, error) {
	q, err := receipt.DecodeQuestion(e.Inputs[len(e.Inputs)-1].Question)
	if err != nil {
		return "", err
	}
	return asking(q), nil
}

// asking puts what is asked into a line.
func asking(q *receipt.Question) string {
	var texts []string
	for _, name := range q.Names() {
		texts = append(texts, fmt.Sprintf("%s: %q", Brief(name), Brief(q.Requests[name].Message)))
	}
	return strings.Join(texts, "; ")
}
