// Every random test of the suite with new seeds: the suite itself always uses the same one.
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Findings, type Verdict } from '../support/verdicts.ts';

/** The options of an exploration. */
export type Exploration = {
  /** After this time the run ends with the file that is running. */
  readonly minutes: number;
  /** With a seed there is one round; null: a new seed for each round. */
  readonly seed: number | null;
  /** Only files with this word in their path. */
  readonly only: string;
};

const promise = 'every random test passes, whatever the seed';
const sources = fileURLToPath(new URL('../../../test', import.meta.url));
const compiled = fileURLToPath(new URL('../../test', import.meta.url));
/** A file that imports this takes its random inputs from DBHTTPD_TEST_SEED. */
const sign = 'support/property.ts';
const maxSeed = 999_999_999;
/** A random test tries this many times as many cases as in the suite, unless the environment says another number. */
const effort = '5';
const maxFileMs = 10 * 60_000;

/** Runs the tests, round after round; resolves to the verdict. */
export async function runExplore(
  { minutes, seed, only }: Exploration,
  say: (line: string) => void,
): Promise<Verdict[]> {
  const files = findRandomTests().filter((file) => file.includes(only));
  if (files.length === 0) throw new Error(`no random test has "${only}" in its path`);
  say(`${files.length} files`);
  const findings = new Findings([promise]);
  const endsAt = performance.now() + minutes * 60_000;
  const isOver = () => seed === null && performance.now() > endsAt;
  let runs = 0;
  for (let round = 1; !isOver() && (seed === null || round === 1); round += 1) {
    const chosen = seed ?? drawSeed();
    say(`round ${round}: seed ${chosen}`);
    for (const file of files) {
      if (isOver()) break;
      const output = await runFile(file, chosen);
      runs += 1;
      if (output === null) continue;
      const repeat = `scripts/soak explore --seed ${chosen} --only ${file}`;
      say(`${output}\nfailed; this repeats it: ${repeat}`);
      findings.breach(promise, repeat);
    }
  }
  say(`${runs} runs of files`);
  return findings.verdicts();
}

/** The files whose inputs depend on the seed: paths below test/ without extension. */
function findRandomTests(): string[] {
  return readdirSync(sources, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.test.ts'))
    .filter((file) => readFileSync(join(sources, file), 'utf8').includes(sign))
    .map((file) => file.replace(/\.test\.ts$/, ''))
    .sort();
}

function drawSeed(): number {
  return 1 + Math.floor(Math.random() * maxSeed);
}

/** Resolves to what the file printed; null if all its tests pass. */
function runFile(file: string, seed: number): Promise<string | null> {
  const env = {
    DBHTTPD_TEST_EFFORT: effort,
    ...process.env,
    DBHTTPD_TEST_SEED: String(seed),
  };
  const args = ['--test', '--test-reporter=spec', join(compiled, `${file}.test.js`)];
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const timer = setTimeout(() => child.kill('SIGKILL'), maxFileMs);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      output += chunk.toString();
    });
  }
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (status) => {
      clearTimeout(timer);
      resolve(status === 0 ? null : output);
    });
  });
}
