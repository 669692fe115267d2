// Records a purchase exactly once, and lists the customer's purchases. Go 1.18 or later, without modules.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"strconv"
	"time"
)

type reply struct {
	Rows                  []map[string]any
	Code, Outcome, Detail string
	Retryable             bool
}

var client = http.Client{Timeout: 40 * time.Second}

// ask returns the gateway's reply. With a key, a write may be repeated even if its reply was lost.
func ask(key, sql string, params ...any) reply {
	body, _ := json.Marshal(map[string]any{"sql": sql, "params": params, "rows": "object"})
	for attempt := 1; ; attempt++ {
		request, _ := http.NewRequest("POST", os.Getenv("DBHTTPD_URL")+"/v1/query", bytes.NewReader(body))
		request.Header.Set("Content-Type", "application/json")
		if token := os.Getenv("DBHTTPD_TOKEN"); token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		if key != "" {
			request.Header.Set("Idempotency-Key", key)
		}
		answer := reply{}
		wait := time.Duration(attempt) * 200 * time.Millisecond
		response, err := client.Do(request)
		if err == nil {
			err = json.NewDecoder(response.Body).Decode(&answer)
			response.Body.Close()
			if err == nil && response.StatusCode == 200 {
				return answer
			}
			if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil {
				wait = time.Duration(seconds) * time.Second
			}
		}
		if err != nil { // No reply, or a part of one, or the page of a proxy.
			answer = reply{Code: "REPLY_LOST", Outcome: "unknown", Retryable: key != ""}
		}
		if !answer.Retryable || attempt == 6 {
			log.Fatalf("%s (%s): %s", answer.Code, answer.Outcome, answer.Detail)
		}
		time.Sleep(wait)
	}
}

func main() {
	order, customer, amount := os.Args[1], os.Args[2], os.Args[3]
	ask(order, "insert into purchase (customer, amount) values (?, ?)", customer, amount)
	for _, row := range ask("", "select id, amount from purchase where customer = ? order by id", customer).Rows {
		fmt.Println(customer, row["amount"])
	}
}
