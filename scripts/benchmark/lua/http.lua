-- What wrk sends and what it says at the end: one statement with a varying id, one line of JSON.
-- Must not know which server answers. Arguments: request before the id, request after it, largest id (0: no id). Also,
-- for a long request, how many letters come then, and its end (without them: the empty line that ends the head).

local before, after, span, whole

function init(args)
  local ending = args[4] and string.rep("x", tonumber(args[4])) .. args[5] or "\r\n"
  before, after, span = args[1], args[2] .. ending, tonumber(args[3])
  whole = span == 0 and before .. after
  math.randomseed(20071107)
end

function request()
  return whole or before .. math.random(span) .. after
end

function done(summary, latency)
  local failed = summary.errors
  io.write(string.format(
    'SUMMARY {"requests":%d,"durationUs":%d,"bytes":%d,"p50Us":%d,"p99Us":%d,' ..
    '"connect":%d,"read":%d,"write":%d,"timeout":%d,"status":%d}\n',
    summary.requests, summary.duration, summary.bytes,
    latency:percentile(50), latency:percentile(99),
    failed.connect, failed.read, failed.write, failed.timeout, failed.status))
end
