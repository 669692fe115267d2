# Records a purchase exactly once, and lists the customer's purchases. Python 3.9 or later, without packages.
import http.client, json, os, sys, time, urllib.error, urllib.request

url = os.environ.get("DBHTTPD_URL", "http://127.0.0.1:9090") + "/v1/query"
token = os.environ.get("DBHTTPD_TOKEN")


def ask(sql, params, key=None, attempts=6):
    """Returns the gateway's reply. With a key, a write may be repeated even if its reply was lost."""
    headers = {"Content-Type": "application/json"}
    if token:
        headers["Authorization"] = "Bearer " + token
    if key:
        headers["Idempotency-Key"] = key
    body = json.dumps({"sql": sql, "params": params, "rows": "object"}).encode()
    for attempt in range(1, attempts + 1):
        wait = attempt * 0.2
        try:
            with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=40) as reply:
                return json.load(reply)
        except urllib.error.HTTPError as error:
            problem = read_problem(error, key)
            wait = float(error.headers.get("Retry-After") or wait)
        except (OSError, http.client.HTTPException, ValueError):
            problem = lost(key)
        if not problem["retryable"] or attempt == attempts:
            raise RuntimeError(f"{problem['code']} ({problem['outcome']}): {problem.get('detail')}")
        time.sleep(wait)


def read_problem(error, key):
    try:
        return {"retryable": False, **json.load(error)}
    except (OSError, http.client.HTTPException, ValueError):
        return lost(key)  # the page of a proxy


def lost(key):
    return {"code": "REPLY_LOST", "outcome": "unknown", "retryable": key is not None}


order, customer, amount = sys.argv[1:4]
try:
    ask("insert into purchase (customer, amount) values (?, ?)", [customer, amount], key=order)
    for row in ask("select id, amount from purchase where customer = ? order by id", [customer])["rows"]:
        print(customer, row["amount"])
except RuntimeError as failure:
    sys.exit(str(failure))
