-- The C client: the statement of a workload with a varying id, straight to MariaDB, rows fetched and dropped.
-- From the environment: BENCH_BEFORE and BENCH_AFTER (the statement around the id), BENCH_SPAN.

local before, after = os.getenv("BENCH_BEFORE"), os.getenv("BENCH_AFTER")
local span = tonumber(os.getenv("BENCH_SPAN"))
local reads = before:sub(1, 6) == "select"
local connection

function thread_init()
  connection = sysbench.sql.driver():connect()
end

function event()
  local rows = connection:query(before .. sysbench.rand.uniform(1, span) .. after)
  -- A write has a result object too, with nothing in it that could be freed: sysbench crashes on that.
  if reads then rows:free() end
end

function thread_done()
  connection:disconnect()
end
