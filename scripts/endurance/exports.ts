// Exports of millions of rows by /v1/query: complete and right in flat memory, and never taken for complete when they are cut.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Database } from '../../test/support/database/mariadb.ts';
import { eventually } from '../../test/support/eventually.ts';
import { type Gateway, startGateway } from '../../test/support/gateway.ts';
import { readMetric } from '../../test/support/scrape.ts';
import { ndjson } from '../../test/support/v1-streams.ts';
import { readUsage, resetPeak } from '../support/proc.ts';
import { Findings, type Verdict } from '../support/verdicts.ts';
import { type Ending, readExport, startSaving, type Way, ways } from './export-clients.ts';
import { createExport, exportPattern } from './export-table.ts';
import { openDatabase, stopAndLook } from './world.ts';

const flatMb = 16;

const promises = {
  whole: 'an export has every row, each as the database holds it',
  flat: `the gateway grows by ${flatMb} MB at most, however long an export is`,
  cut: 'what is cut is never taken for whole, and what came of it is right',
  reported: 'a lost database is reported: in lines by the last line, in CSV by a reset',
  logged: 'a reply that is cut for want of the database is not complete in the access log',
  ended: 'a statement ends with the client that asked for it',
  left: 'nothing is left after the stop',
} as const;

/** The faults that end exports in the middle. */
const strikes = ['connection', 'server', 'worker', 'client'] as const;
type Strike = (typeof strikes)[number];

/** Enough rows to compile the code, and for heaps to reach their size. */
const warmRows = 50_000;
/** Bytes of a row in an export, about. */
const rowBytes = 130;

/** One run: its parts and findings. */
type Run = {
  readonly database: Database;
  readonly gateway: Gateway;
  readonly rows: number;
  readonly findings: Findings;
  readonly say: (line: string) => void;
};

/** Exports this many rows in every way, then cuts exports in this many rounds. Resolves to the verdicts. */
export async function runExports(
  { rows, cuts }: { readonly rows: number; readonly cuts: number },
  say: (line: string) => void,
): Promise<Verdict[]> {
  const database = await openDatabase();
  await createExport(database, rows);
  const settings = { workers: 2, access_log: 'json', statement_timeout: '5m' };
  const gateway = await startGateway({ database, settings, detached: true });
  const findings = new Findings(Object.values(promises));
  const run: Run = { database, gateway, rows, findings, say };
  for (const way of ways) await readWhole(run, way, Math.min(warmRows, rows));
  for (const way of ways) await measureWhole(run, way);
  for (let round = 1; round <= cuts; round += 1) {
    for (const strike of strikes) await cutBy(run, strike, round);
  }
  say(`cuts: ${findings.counts()}`);
  for (const what of await stopAndLook(gateway, database)) findings.breach(promises.left, what);
  await gateway.stop();
  await database.stop();
  return findings.verdicts();
}

function nameOf({ type, coding }: Way): string {
  return `${type} ${coding}`;
}

async function readWhole(
  { gateway, findings }: Run,
  way: Way,
  rows: number,
): Promise<Ending | null> {
  const wish = { port: gateway.port, way, rows, requestId: 'whole' };
  try {
    const ending = await readExport(wish);
    if (ending.end.kind === 'whole' && ending.rows === rows) return ending;
    findings.breach(promises.whole, `${nameOf(way)}: ${JSON.stringify(ending)}`);
  } catch (error) {
    findings.breach(promises.whole, `${nameOf(way)}: ${error}`);
  }
  return null;
}

/** Measures one export that runs alone. */
async function measureWhole(run: Run, way: Way): Promise<void> {
  const { gateway, rows, findings, say } = run;
  resetPeak(gateway.pid);
  const { residentBytes } = readUsage(gateway.pid);
  const from = performance.now();
  const ending = await readWhole(run, way, rows);
  const seconds = (performance.now() - from) / 1000;
  const grownMb = (readUsage(gateway.pid).peakBytes - residentBytes) / 1e6;
  const megabytes = ((ending?.bytes ?? 0) / 1e6).toFixed(1);
  say(
    `${nameOf(way)}: ${rows} rows, ${megabytes} MB in ${seconds.toFixed(1)} s, ${grownMb.toFixed(1)} MB more memory`,
  );
  if (grownMb > flatMb) findings.breach(promises.flat, `${nameOf(way)}: ${grownMb.toFixed(1)} MB`);
}

/** Exports in every way at once, and strikes at a random place. Resolves when everything serves again. */
async function cutBy(run: Run, strike: Strike, round: number): Promise<void> {
  const requestIds = ways.map((_, index) => `${strike}-${round}-${index}`);
  // A place in all bytes: as often early (in what is held back, or just after) as late.
  const afterBytes = Math.floor((ways.length * run.rows * rowBytes) ** Math.random());
  const endings =
    strike === 'client'
      ? await killClients(run, requestIds, afterBytes)
      : await strikeReaders(run, strike, requestIds, afterBytes);
  for (const [index, ending] of endings.entries()) {
    const way = ways[index] as Way;
    const example = `${strike} after ${afterBytes}, ${nameOf(way)}: ${JSON.stringify(ending)}`;
    run.findings.count(`${strike}: ${ending?.end.kind ?? 'not begun'}`);
    if (ending === null) continue;
    if (ending.end.kind === 'whole' && ending.rows !== run.rows) {
      run.findings.breach(promises.cut, example);
    }
    if (strike !== 'connection' && strike !== 'server') continue;
    const isReported = ['whole', way.type === ndjson ? 'error' : 'cut'].includes(ending.end.kind);
    if (!isReported) run.findings.breach(promises.reported, example);
    if (ending.end.kind === 'cut') {
      const line = await findLine(run.gateway, requestIds[index] as string);
      if (line.complete) run.findings.breach(promises.logged, `${example} ${JSON.stringify(line)}`);
    }
  }
}

/** Strikes when all have begun and this much has arrived. Null if a reply was anything but an export: a breach. */
async function strikeReaders(
  run: Run,
  strike: Exclude<Strike, 'client'>,
  requestIds: readonly string[],
  afterBytes: number,
): Promise<(Ending | null)[]> {
  const { gateway, rows, findings } = run;
  const begun = new Set<Way>();
  let bytes = 0;
  let struck: Promise<void> | null = null;
  const onBytes = (way: Way, more: number) => {
    begun.add(way);
    bytes += more;
    if (begun.size === ways.length && bytes >= afterBytes) struck ??= hit(run, strike);
  };
  const endings = await Promise.all(
    ways.map((way, index) => {
      const requestId = requestIds[index] as string;
      const wish = { port: gateway.port, way, rows, requestId };
      return readExport(wish, (more) => onBytes(way, more)).catch((error) => {
        findings.breach(promises.cut, `${strike}, ${nameOf(way)}: ${error}`);
        return null;
      });
    }),
  );
  await struck;
  return endings;
}

/** Ends a part that the exports need, and resolves when it serves again. */
async function hit({ database, gateway }: Run, strike: Exclude<Strike, 'client'>): Promise<void> {
  switch (strike) {
    case 'connection':
      for (const id of await exporting(database)) {
        // A connection that has ended meanwhile is unknown to the server.
        await database.query(`kill ${id}`).catch(() => {});
      }
      return;
    case 'server':
      await database.halt('SIGKILL');
      await database.resume();
      return eventuallyReady(gateway);
    case 'worker': {
      const victims = gateway.workers();
      for (const pid of victims) process.kill(pid, 'SIGKILL');
      await eventually('the workers are replaced', async () => {
        const workers = gateway.workers();
        const areNew = workers.length === 2 && workers.every((pid) => !victims.includes(pid));
        return areNew && (await readMetric(gateway, 'dbhttpd_worker_up')) === 2;
      });
      return;
    }
    default:
      throw new Error(`no such strike: ${strike satisfies never}`);
  }
}

async function eventuallyReady(gateway: Gateway): Promise<void> {
  await eventually('the database is back for all', async () => {
    const replies = await Promise.all([gateway.get('/readyz'), gateway.get('/readyz')]);
    return replies.every(({ status }) => status === 200);
  });
}

/** The connections that send an export. */
async function exporting(database: Database): Promise<number[]> {
  const found = await database.query(
    'select id from information_schema.processlist where db = database() and info like ?',
    [exportPattern],
  );
  return found.map(({ id }) => Number(id));
}

/** Kills clients that write to files, and reads the files. */
async function killClients(
  { gateway, rows, database, findings }: Run,
  requestIds: readonly string[],
  afterBytes: number,
): Promise<Ending[]> {
  const clients = ways.map((way, index) => {
    const requestId = requestIds[index] as string;
    const wish = { port: gateway.port, way, rows, requestId };
    return startSaving(wish, join(gateway.directory, `export-${index}`));
  });
  const enough = () =>
    clients.reduce((sum, client) => sum + client.bytes(), 0) >= afterBytes ||
    clients.every((client) => client.isOver());
  await eventually('enough has come', enough, { timeoutMs: 300_000 });
  const endings = await Promise.all(clients.map((client) => client.kill()));
  const none = async () => (await exporting(database)).length === 0;
  await eventually('no statement goes on', none).catch(() =>
    findings.breach(promises.ended, `killed after ${afterBytes} bytes`),
  );
  return endings;
}

type Line = { readonly request_id: string; readonly complete: boolean; readonly bytes: number };

/** A request's line in the access log, as soon as it is there. */
function findLine(gateway: Gateway, requestId: string): Promise<Line> {
  const path = join(gateway.directory, 'log.access.log');
  return eventually(`${requestId} is in the access log`, () =>
    readFileSync(path, 'utf8')
      .split('\n')
      .filter((line) => line.includes(`"request_id":"${requestId}"`))
      .map((line) => JSON.parse(line) as Line)
      .at(0),
  );
}
