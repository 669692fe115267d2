-- The C client: the statement of a workload with a varying id, straight to MariaDB, rows fetched and dropped.
-- Must not know HTTP. From the environment: BENCH_BEFORE and BENCH_AFTER (the statement around the id), BENCH_SPAN.

local before, after = os.getenv("BENCH_BEFORE"), os.getenv("BENCH_AFTER")
local span = tonumber(os.getenv("BENCH_SPAN"))
local connection

function thread_init()
  connection = sysbench.sql.driver():connect()
end

function event()
  local rows = connection:query(before .. sysbench.rand.uniform(1, span) .. after)
  if rows then rows:free() end
end

function thread_done()
  connection:disconnect()
end
