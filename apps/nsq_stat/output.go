package main

import (
	"encoding/json"
	"fmt"
	"io"
)

// output is a form of the rows.
type output interface {
	begin() error                // before the first row
	row(number int, r row) error // numbers begin at 1
}

// table is the form for people, with a header every 25 rows. What there is to remark stands behind a
// row.
type table struct{ out io.Writer }

const (
	header = "------rate------+----------------depth----------------+--------------metadata---------------\n" +
		"ingress  egress |   total     mem    disk inflt   def |     req     t-o         msgs clients\n"
	headerEvery = 25 // rows
)

func newTable(out io.Writer) output { return table{out} }

func (t table) begin() error {
	_, err := io.WriteString(t.out, header)
	return err
}

func (t table) row(number int, r row) error {
	text := fmt.Sprintf("%7d %7d | %7d %7d %7d %5d %5d | %7d %7d %12d %7d", r.Ingress, r.Egress,
		r.Depth, r.Memory, r.Disk, r.InFlight, r.Deferred, r.Requeued, r.TimedOut, r.Messages, r.Clients)
	if remarks := r.remarks(); remarks != "" {
		text += " | " + remarks
	}
	if number%headerEvery == 0 {
		text = header + text
	}
	_, err := io.WriteString(t.out, text+"\n")
	return err
}

// jsonLines is the form for programs: one object a line.
type jsonLines struct{ encoder *json.Encoder }

func newJSONLines(out io.Writer) output { return jsonLines{json.NewEncoder(out)} }

func (jsonLines) begin() error { return nil }

func (j jsonLines) row(_ int, r row) error { return j.encoder.Encode(r) }
