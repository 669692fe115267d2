// One scrape shows all workers, in time though one hangs, and its counters never go backwards.
// Must not know what the workers count.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { parseStatus } from '../../../scripts/support/proc.ts';
import { createDaemon, type Daemon } from '../../support/daemon.ts';
import { eventually } from '../../support/eventually.ts';
import { fallenCounters, parseExposition, type Samples, sumOf } from '../../support/exposition.ts';

const daemons: Daemon[] = [];
/** Of two workers; what is done to them is over when the next test begins. */
let shared: Daemon;
before(async () => {
  shared = await start();
});
after(async () => {
  for (const daemon of daemons) await daemon.dispose();
});

async function start(): Promise<Daemon> {
  const daemon = createDaemon({ workers: '2' });
  daemons.push(daemon);
  assert.equal((await daemon.start()).status, 0);
  return daemon;
}

/** Asked on a new connection each time; one that a hung worker took is given up and asked again. */
async function scrape(daemon: Daemon): Promise<Samples> {
  const text = await eventually('an answer of a sound worker', async () => {
    const response = await fetch(`http://${daemon.address()}/metrics`, {
      headers: { connection: 'close' },
      signal: AbortSignal.timeout(1000),
    });
    return response.text();
  });
  return parseExposition(text);
}

test('shows both slots up, whichever worker is asked', async () => {
  const metrics = await scrape(shared);
  assert.equal(metrics.get('dbhttpd_worker_up{section="world",slot="0"}'), 1);
  assert.equal(metrics.get('dbhttpd_worker_up{section="world",slot="1"}'), 1);
  assert.equal(metrics.get('dbhttpd_workers_silent{section="world"}'), 0);
});

test('tells what workers and supervisor use, each under names of its own', async () => {
  const metrics = await scrape(shared);
  for (const slot of ['0', '1']) {
    const read = (name: string) => metrics.get(`${name}{section="world",slot="${slot}"}`) ?? 0;
    const used = read('nodejs_heap_size_used_bytes');
    assert.ok(used > 0 && used < read('nodejs_heap_size_limit_bytes'), `${used} bytes`);
    assert.ok(read('nodejs_external_memory_bytes') > 0);
    assert.ok(read('process_resident_memory_bytes') > used);
  }
  const own = (name: string) => metrics.get(`dbhttpd_supervisor_${name}{section="world"}`) ?? 0;
  assert.ok(own('cpu_seconds_total') > 0);
  assert.ok(own('resident_memory_bytes') > own('heap_used_bytes'));
  assert.ok(own('heap_used_bytes') > 0);
  const ofProcesses = [...metrics.keys()].filter((sample) =>
    /^process_(cpu|resident)/.test(sample),
  );
  assert.ok(
    ofProcesses.every((sample) => sample.includes('slot=')),
    String(ofProcesses),
  );
});

// The first to stand still, since this is told of the past.
test('a worker that stood still tells of it by the lag of its event loop', async () => {
  const [worker = 0] = shared.workers();
  process.kill(worker, 'SIGSTOP');
  // The scrape has waited for it longer than the half second that is looked for.
  const silent = await scrape(shared);
  assert.equal(sumOf(silent, 'dbhttpd_workers_silent'), 1);
  process.kill(worker, 'SIGCONT');
  await eventually('a delay of more than half a second is counted', async () => {
    const metrics = await scrape(shared);
    const late = (slot: string) =>
      sumOf(metrics, 'dbhttpd_event_loop_lag_seconds_count', { slot }) -
      sumOf(metrics, 'dbhttpd_event_loop_lag_seconds_bucket', { slot, le: '0.5' });
    const longest = sumOf(metrics, 'dbhttpd_event_loop_lag_max_seconds');
    return late('0') + late('1') > 0 && longest > 0.5;
  });
});

test('says that a worker is silent, within 1 s of a sound worker being asked', async () => {
  const [worker = 0] = shared.workers();
  process.kill(worker, 'SIGSTOP');
  const metrics = await scrape(shared);
  assert.equal(metrics.get('dbhttpd_workers_silent{section="world"}'), 1);
  process.kill(worker, 'SIGCONT');
});

test('no counter goes backwards over the death of a worker', async () => {
  const before = await scrape(shared);
  const [worker = 0] = shared.workers();
  process.kill(worker, 'SIGKILL');
  await eventually('the restart is counted and the slot up again', async () => {
    const metrics = await scrape(shared);
    assert.deepEqual(fallenCounters(before, metrics), []);
    const restarts = [...metrics].filter(
      ([name, value]) => /worker_restarts_total/.test(name) && value > 0,
    );
    const up = [...metrics].filter(([name, value]) => /worker_up/.test(name) && value === 1);
    return restarts.length === 1 && up.length === 2;
  });
});

test('a thousand scrapes cost the supervisor less than 18 MB', async (t) => {
  const daemon = await start();
  const residentMb = () =>
    parseStatus(readFileSync(`/proc/${daemon.pid()}/status`, 'utf8')).residentBytes / 2 ** 20;
  const before = residentMb();
  for (let made = 0; made < 1000; made += 1) {
    const response = await fetch(`http://${daemon.address()}/metrics`);
    assert.equal(response.status, 200);
    await response.arrayBuffer();
  }
  const grown = residentMb() - before;
  t.diagnostic(`${grown.toFixed(1)} MB`);
  assert.ok(grown < 18, `${grown} MB`);
});
