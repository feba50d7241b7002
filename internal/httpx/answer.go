package httpx

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// Header values are shared between answers: net/http reads them only.
var (
	nsqHeader  = []string{"nsq; version=1.0"}
	textHeader = []string{"text/plain; charset=utf-8"}
	jsonHeader = []string{"application/json; charset=utf-8"}
)

// answer is one complete response.
type answer struct {
	status      int
	contentType []string // nil when there is no body
	nsq         bool     // carries the NSQ header
	body        []byte
}

// form is the family an answer belongs to: whether errors are JSON and the NSQ header is sent.
type form bool

const (
	apiForm   form = true
	plainForm form = false
)

// success renders the result of a handler. Text is declared as such rather than left to content
// sniffing, which would turn some configured values into HTML.
func (f form) success(result any) (answer, error) {
	a := answer{status: http.StatusOK, nsq: bool(f)}
	switch result := result.(type) {
	case nil:
	case string:
		a.body = []byte(result)
	case []byte:
		a.body = result
	default:
		body, err := json.Marshal(result)
		if err != nil {
			return answer{}, fmt.Errorf("encode %T: %w", result, err)
		}
		a.body, a.contentType = body, jsonHeader
	}
	if a.contentType == nil && len(a.body) > 0 {
		a.contentType = textHeader
	}
	return a, nil
}

// failure renders an error for the client.
func (f form) failure(e *Error) answer {
	a := answer{status: e.Status, nsq: bool(f)}
	if f == plainForm {
		a.body, a.contentType = []byte(e.Message), textHeader
		return a
	}
	body, err := json.Marshal(struct {
		Message string `json:"message"`
	}{e.Message})
	if err != nil { // a string always has a JSON form
		panic(err)
	}
	a.body, a.contentType = body, jsonHeader
	return a
}

func (a answer) write(w http.ResponseWriter) error {
	header := w.Header()
	if a.nsq {
		header["X-Nsq-Content-Type"] = nsqHeader
	}
	if a.contentType != nil {
		header["Content-Type"] = a.contentType
	}
	w.WriteHeader(a.status)
	if len(a.body) == 0 {
		return nil
	}
	_, err := w.Write(a.body)
	return err
}
