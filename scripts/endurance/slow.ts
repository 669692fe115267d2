// slowhttptest against the real daemon with its real timeouts: the gateway closes the slow connections in time, and others notice nothing.
import { spawn } from 'node:child_process';
import { setTimeout as pause } from 'node:timers/promises';
import { type Gateway, startGateway } from '../../test/support/gateway.ts';
import { serverSockets } from '../../test/support/kernel-sockets.ts';
import { Findings, type Verdict } from '../support/verdicts.ts';
import { Client } from './client.ts';
import { judgeEnding, requestPromises } from './judgement.ts';
import { point } from './questions.ts';
import { openDatabase, stopAndLook } from './world.ts';

const promises = {
  ...requestPromises,
  reached: 'all slow clients are connected at first',
  letGo: 'slow clients are let go in time',
  left: 'nothing is left after the stop',
} as const;

/** A way of being slow. `boundS`: the gateway's limit, and its time to notice. */
type Attack = {
  readonly name: string;
  readonly connections: number;
  readonly args: readonly string[];
  readonly path: string;
  readonly boundS: number;
};

const tinyReads = ['-X', '-w', '512', '-y', '1024', '-n', '5', '-z', '32'];
const keepaliveS = 10;

const attacks: readonly Attack[] = [
  {
    name: 'headers (-H)',
    connections: 500,
    args: ['-H', '-i', '5'],
    path: '/livez',
    boundS: 20 + 2,
  },
  {
    name: 'body (-B)',
    connections: 500,
    args: ['-B', '-i', '5', '-s', '8192', '-f', 'application/json'],
    path: '/db',
    boundS: 60 + 2,
  },
  // The kernel takes such a reply at once, so the gateway holds an idle connection.
  {
    name: 'reading (-X) of short replies',
    connections: 500,
    args: tinyReads,
    path: query("select repeat('x', 60000)"),
    boundS: keepaliveS + 2,
  },
  // Fewer readers than the pools have connections: each reader holds one connection as long as it reads.
  {
    name: 'reading (-X) of long replies',
    connections: 15,
    args: tinyReads,
    path: query('select * from large'),
    boundS: 35 + 2,
  },
];

const others = 8;
const restMs = 20;
/** Time for the tool to connect, and for a slow machine. */
const spareS = 5;

/** Makes one attack after the other; resolves to the verdicts. Takes two to three minutes. */
export async function runSlow(say: (line: string) => void): Promise<Verdict[]> {
  const database = await openDatabase();
  const settings = { workers: 2, pool: 20, keepalive_timeout: `${keepaliveS}s` };
  const gateway = await startGateway({ database, settings, detached: true });
  const findings = new Findings(Object.values(promises));
  let lastId = 0;
  let isOver = false;
  const lane = async () => {
    const client = new Client(gateway.port, true);
    while (!isOver) {
      lastId += 1;
      const question = point(lastId);
      const fromMs = performance.now();
      const ending = await client.ask(question.request);
      const { outcome, breach } = judgeEnding(question, ending, { worker: false, database: false });
      findings.count(performance.now() - fromMs > 1_000 ? `${outcome} after a second` : outcome);
      if (breach !== null) findings.breach(breach.promise, breach.example);
      await pause(restMs);
    }
    client.close();
  };
  const lanes = Array.from({ length: others }, lane);
  for (const one of attacks) {
    const { maxHeld, seconds } = await attack(one, gateway);
    say(`${one.name}: ${maxHeld} held, let go after ${seconds.toFixed(1)} s; ${findings.counts()}`);
    if (maxHeld < one.connections) findings.breach(promises.reached, `${one.name}: ${maxHeld}`);
    if (seconds > one.boundS + spareS) {
      findings.breach(promises.letGo, `${one.name}: ${seconds.toFixed(1)} s`);
    }
  }
  isOver = true;
  await Promise.all(lanes);
  for (const what of await stopAndLook(gateway, database)) findings.breach(promises.left, what);
  await gateway.stop();
  await database.stop();
  return findings.verdicts();
}

/** Runs the tool until the gateway has closed all of its connections, or should have. */
async function attack({ connections, args, path, boundS }: Attack, { url, port }: Gateway) {
  const size = ['-c', String(connections), '-r', '500', '-l', String(boundS + 4 * spareS)];
  const tool = spawn('slowhttptest', [...args, ...size, '-u', `${url}${path}`], {
    stdio: 'ignore',
  });
  const ended = new Promise<void>((resolve, reject) => {
    tool.once('exit', () => resolve()).once('error', reject);
  });
  const fromMs = performance.now();
  const secondsPassed = () => (performance.now() - fromMs) / 1000;
  // A socket that the gateway has closed belongs to the kernel and has no inode, though the client has not read all of it yet.
  const held = () => serverSockets(port).filter(({ inode }) => inode !== '0').length - others;
  let maxHeld = 0;
  while (secondsPassed() < boundS + 3 * spareS) {
    const now = held();
    maxHeld = Math.max(maxHeld, now);
    if (maxHeld >= connections && now <= 0) break;
    await pause(250);
    if (tool.exitCode !== null && now <= 0) break;
  }
  const seconds = secondsPassed();
  tool.kill('SIGKILL');
  await ended;
  return { maxHeld, seconds };
}

function query(sql: string): string {
  return `/db?${encodeURIComponent(JSON.stringify({ SQL: sql }))}`;
}
