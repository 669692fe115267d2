-- The requests of wrk and its report at the end: one request with a varying id, one line of JSON.
-- Arguments: the request, with {id} for a number and {key} for a key that comes once;
-- the smallest and the largest number. For a long request also the number of letters after it, and its end.

local pieces, least, most = {}, 0, 0
local begun, sent = os.time() % 0x100000000, 0

local function split(text)
  local from = 1
  for at, mark, past in text:gmatch("(){(%l+)}()") do
    if mark == "id" or mark == "key" then
      pieces[#pieces + 1] = text:sub(from, at - 1)
      pieces[#pieces + 1] = mark
      from = past
    end
  end
  pieces[#pieces + 1] = text:sub(from)
end

function init(args)
  least, most = tonumber(args[2]), tonumber(args[3])
  split(args[1])
  if args[4] then
    pieces[#pieces] = pieces[#pieces] .. string.rep("x", tonumber(args[4])) .. args[5]
  end
  math.randomseed(20071107)
end

-- Text and marks alternate.
local filled = {}

function request()
  if #pieces == 1 then return pieces[1] end
  if #pieces == 3 and pieces[2] == "id" then return pieces[1] .. math.random(least, most) .. pieces[3] end
  sent = sent + 1
  for at = 1, #pieces, 2 do
    filled[at] = pieces[at]
    if pieces[at + 1] == "id" then
      filled[at + 1] = math.random(least, most)
    elseif pieces[at + 1] == "key" then
      filled[at + 1] = string.format("%08x%08x", begun, sent)
    end
  end
  return table.concat(filled)
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
