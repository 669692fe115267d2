-- The C fetch loop for large results: libmariadb's mysql_use_result row by row, nothing kept; one line of JSON each time.
-- From the environment: BENCH_BEFORE and BENCH_AFTER (the statement around the id), BENCH_HOST, BENCH_PORT,
-- BENCH_USER, BENCH_PASSWORD, BENCH_DATABASE. sysbench links libmariadb, so LuaJIT finds it without a compiler.

local ffi = require("ffi")

ffi.cdef [[
  typedef struct st_mysql MYSQL;
  typedef struct st_mysql_res MYSQL_RES;
  typedef struct { long seconds; long nanoseconds; } bench_time;
  MYSQL *mysql_init(MYSQL *);
  MYSQL *mysql_real_connect(MYSQL *, const char *, const char *, const char *, const char *, unsigned, const char *, unsigned long);
  int mysql_real_query(MYSQL *, const char *, unsigned long);
  MYSQL_RES *mysql_use_result(MYSQL *);
  char **mysql_fetch_row(MYSQL_RES *);
  unsigned mysql_errno(MYSQL *);
  const char *mysql_error(MYSQL *);
  void mysql_free_result(MYSQL_RES *);
  void mysql_close(MYSQL *);
  int clock_gettime(int, bench_time *);
]]

local library = ffi.load("libmariadb.so.3")
local statement = os.getenv("BENCH_BEFORE") .. 1 .. os.getenv("BENCH_AFTER")
local connection

local function now()
  local time = ffi.new("bench_time")
  ffi.C.clock_gettime(1, time)
  return tonumber(time.seconds) * 1000 + tonumber(time.nanoseconds) / 1e6
end

local function check(good)
  if not good then error(ffi.string(library.mysql_error(connection))) end
end

function thread_init()
  connection = library.mysql_init(nil)
  check(library.mysql_real_connect(connection, os.getenv("BENCH_HOST"), os.getenv("BENCH_USER"),
    os.getenv("BENCH_PASSWORD"), os.getenv("BENCH_DATABASE"), tonumber(os.getenv("BENCH_PORT")), nil, 0) ~= nil)
end

function event()
  local begun = now()
  check(library.mysql_real_query(connection, statement, #statement) == 0)
  local result = library.mysql_use_result(connection)
  check(result ~= nil)
  local rows = library.mysql_fetch_row(result) ~= nil and 1 or 0
  local first = now()
  while library.mysql_fetch_row(result) ~= nil do rows = rows + 1 end
  check(library.mysql_errno(connection) == 0)
  library.mysql_free_result(result)
  print(string.format('FETCH {"rows":%d,"firstMs":%.3f,"totalMs":%.3f}', rows, first - begun, now() - begun))
end

function thread_done()
  library.mysql_close(connection)
end
