// The container's health check: exit status 0 when /livez answers 200 within 2 s.
// Must not know more than an address: DBHTTPD_HEALTH_URL, if the section does not listen on port 9090.
const url = process.env.DBHTTPD_HEALTH_URL ?? 'http://127.0.0.1:9090/livez';

try {
  const { status } = await fetch(url, { signal: AbortSignal.timeout(2000) });
  process.exitCode = status === 200 ? 0 : 1;
} catch {
  process.exitCode = 1;
}
