// Runs the sections of docs/operate/failover.md: a gateway before three servers, clients that write all the time, and an operator who
// types what the page shows.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { findAttention } from '../../../src/console/attention.ts';
import type { StatementList } from '../../../src/shared/observe/statement-sums.ts';
import type { Stats } from '../../../src/shared/observe/stats.ts';
import { rolesOf } from '../clusters/several-servers.ts';
import type { Row } from '../database/mariadb.ts';
import { eventually } from '../eventually.ts';
import { type Gateway, startGateway, type Target } from '../gateway.ts';
import { findBlocks } from './page-blocks.ts';
import { localiseGateway, openCommands, type PageCommands } from './page-commands.ts';
import { openSqlPrograms } from './sql-programs.ts';
import { startWriters, type Writers, type Written } from './writers.ts';

/** The path of the page. */
export const failoverPage = 'docs/operate/failover.md';

/** A server as the page's commands need it. */
export type PageServer = {
  /** `db1`, `db2` …, as the page calls it. */
  readonly name: string;
  readonly host: string;
  readonly port: number;
  /** The address for other servers; missing if no command of the page needs it. */
  readonly ownPort?: number;
  readonly query: (sql: string) => Promise<Row[]>;
};

/** The commands of one section. */
export type SectionRun = PageCommands & {
  /** Waits until the console says the next sentences that the page shows. */
  readonly console: () => Promise<void>;
};

/** One section of the page, and what happens to its servers meanwhile. */
export type Scene<ServerSet> = {
  readonly heading: string;
  readonly play: (
    page: SectionRun,
    stage: { readonly set: ServerSet; readonly gateway: Gateway; readonly writers: Writers },
  ) => Promise<void>;
};

/** The result of a section. */
export type Played = { readonly heading: string; readonly written: Written };

/** Plays scenes one after the other before the same servers. Rejects if the page shows something else than what happens. */
export async function playScenes<ServerSet extends { readonly target: Target }>(
  { set, servers }: { readonly set: ServerSet; readonly servers: readonly PageServer[] },
  scenes: readonly Scene<ServerSet>[],
  say: (played: Played) => void,
): Promise<void> {
  const settings = { statement_timeout: '60s' };
  const gateway = await startGateway({ database: set.target, settings });
  const programs = await openSqlPrograms(
    Object.fromEntries(servers.map(({ name, query }) => [name, query])),
  );
  const blocks = findBlocks(readFileSync(failoverPage, 'utf8'));
  const localise = localiser(servers, gateway);
  let writers: Writers | null = null;
  try {
    await eventually('a server takes writes', async () =>
      (await rolesOf(gateway)).includes('primary'),
    );
    for (const { heading, play } of scenes) {
      writers = await startWriters(gateway);
      const commands = openCommands(blocks, heading, { localise, functions: programs.functions });
      const page = { ...commands, console: watchConsole(commands, gateway, localise) };
      await play(page, { set, gateway, writers });
      commands.end();
      const written = await writers.stop();
      say({ heading, written });
      assert.deepEqual(await contradictions(gateway, servers, written), []);
    }
  } finally {
    await writers?.stop();
    programs.close();
    await gateway.stop();
  }
}

/** The headings of the page that have commands. */
export function headingsWithCommands(): readonly string[] {
  const blocks = findBlocks(readFileSync(failoverPage, 'utf8'));
  return [
    ...new Set(blocks.filter(({ language }) => language === 'sh').map(({ heading }) => heading)),
  ];
}

function localiser(servers: readonly PageServer[], gateway: Gateway): (text: string) => string {
  const localise = localiseGateway(gateway);
  return (text) =>
    servers.reduce(
      (changed, { name, host, port, ownPort }) =>
        changed
          .replaceAll(`${name}:3306`, `${host}:${port}`)
          .replaceAll(`${name}\t`, `${host}\t`)
          .replaceAll(
            `MASTER_HOST = '${name}'`,
            `MASTER_HOST = '127.0.0.1', MASTER_PORT = ${ownPort}, MASTER_CONNECT_RETRY = 1`,
          ),
      localise(text),
    );
}

function watchConsole(
  commands: PageCommands,
  gateway: Gateway,
  localise: (text: string) => string,
): () => Promise<void> {
  const shown = commands.texts('console').map((text) => localise(text).trim().split('\n'));
  return async () => {
    const wanted = shown.shift();
    assert.ok(wanted !== undefined, 'the page shows no more of the console');
    let said: readonly string[] = [];
    try {
      await eventually('the console says it', async () => {
        const stats = (await gateway.get('/v1/stats')).json<Stats>();
        const statements = (await gateway.get('/v1/statements')).json<StatementList>();
        said = findAttention(stats, [], statements).map(({ text }) => text);
        return wanted.every((sentence) => said.includes(sentence));
      });
    } catch (cause) {
      throw new Error(`the console says\n${said.join('\n')}\nand not\n${wanted.join('\n')}`, {
        cause,
      });
    }
  };
}

/** The rows of the primary that contradict the replies to clients. */
async function contradictions(
  gateway: Gateway,
  servers: readonly PageServer[],
  { accepted, refused }: Written,
): Promise<readonly string[]> {
  const primary = servers[(await rolesOf(gateway)).indexOf('primary')];
  if (primary === undefined) return ['there is no primary'];
  const rows = await primary.query('select n, count(*) as c from writes group by n');
  const held = new Map(rows.map(({ n, c }) => [Number(n), Number(c)]));
  return [
    ...accepted.filter((n) => !held.has(n)).map((n) => `${n} was answered with 200 and is lost`),
    ...refused.filter((n) => held.has(n)).map((n) => `${n} was not executed and is there`),
    ...[...held].filter(([, count]) => count > 1).map(([n]) => `${n} is there twice`),
  ];
}
