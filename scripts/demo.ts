// The demo: a database of real data, the gateway in front of it, a question and a call with their answers; or the end of both,
// with or without their files.
import { spawnSync } from 'node:child_process';
import mysql from 'mysql2/promise';
import { ensureDatabase, stopDatabase } from './demonstration/database.ts';
import {
  ensureGateway,
  namedDirectory,
  startCommand,
  stopGateway,
} from './demonstration/gateway.ts';
import { createPlayground } from './demonstration/playground.ts';
import {
  ensureState,
  findPlaces,
  type Places,
  removeFiles,
  type State,
  writeState,
} from './demonstration/state.ts';
import { serverFiles } from './support/private-server.ts';
import { loadWorld } from './world/load.ts';
import { createAccount, worldVersion } from './world/schema.ts';

const example = {
  sql:
    'select p.name, n.name as country, p.latitude, p.longitude from place p ' +
    'join country_name n on n.code = p.country and n.language = ? order by p.latitude desc limit 2',
  params: ['ja'],
};

async function start(places: Places): Promise<void> {
  const begun = await ensureDatabase(places, ensureState(places));
  writeState(places, begun.state);
  console.log(`- MariaDB: ${begun.what}, port ${begun.state.databasePort}, ${places.database}`);
  await ensureWorld(places, begun.state);
  const gateway = await ensureGateway(places, begun.state);
  if (gateway.what !== 'running') console.log(`- ${shell(startCommand(places))}`);
  console.log(`- dbhttpd: ${gateway.what}, pid ${gateway.pid} in ${places.pidfile}\n`);
  ask(gateway.url);
  call(gateway.url);
  console.log(farewell(gateway.url, places));
}

async function ensureWorld(places: Places, state: State): Promise<void> {
  if (state.worldVersion === worldVersion) {
    console.log('- world: loaded before');
    return;
  }
  const server = {
    socketPath: serverFiles(places.database).socket,
    user: 'root',
    password: state.rootPassword,
    multipleStatements: true,
  };
  let total = 0;
  await loadWorld(server, (table, rows) => {
    total += rows;
    console.log(`- world: ${table}, ${rows} rows`);
  });
  const connection = await mysql.createConnection(server);
  await connection.query(createAccount('app', state.appPassword));
  await connection.query(createPlayground('app'));
  await connection.end();
  writeState(places, { ...state, worldVersion });
  console.log(`- world: ${total} rows in all, from tzdata and CLDR`);
}

/** Asks by curl, as a person would, and shows the question and the answer, a row a line. */
function ask(url: string): void {
  const request = JSON.stringify(example);
  const type = 'Content-Type: application/json';
  console.log(`curl -s ${url}/v1/query -H '${type}' -d '${request}'\n`);
  const options = ['-sS', '--fail', '--max-time', '10', '-H', type, '-d', request];
  const answer = spawnSync('curl', [...options, `${url}/v1/query`], { encoding: 'utf8' });
  if (answer.status !== 0) throw new Error(`no answer: ${answer.error ?? answer.stderr}`);
  if (!answer.stdout.includes('"rows":[[')) throw new Error(`not the rows: ${answer.stdout}`);
  console.log(answer.stdout.replace('"rows":[[', '"rows":[\n  [').replaceAll('],[', '],\n  ['));
}

/** Calls a named statement by curl, and shows the call and its answer. */
function call(url: string): void {
  const target = `${url}/v1/named/country?code=JP&language=fr`;
  console.log(`\ncurl -s '${target}'\n`);
  const answer = spawnSync('curl', ['-sS', '--fail', '--max-time', '10', target], {
    encoding: 'utf8',
  });
  if (answer.status !== 0) throw new Error(`no answer: ${answer.error ?? answer.stderr}`);
  if (!answer.stdout.includes('"name":"Japon"')) throw new Error(`not it: ${answer.stdout}`);
  console.log(answer.stdout);
}

function farewell(url: string, places: Places): string {
  return `
Try next:
  curl -s ${url}/v1/query --json '{"sql":"select * from place where country = ?","params":["JP"],"rows":"object"}'
  curl -s ${url}/v1/query -H 'Accept: text/csv' --json '{"sql":"select * from country limit 3"}'
  curl -s ${url}/v1/query --json '{"sql":"insert into note (text) values (?)","params":["héllo"]}'
  curl -s ${url}/v1/query -H 'Accept: application/x-ndjson' --json '{"sql":"select * from timezone_transition"}' | wc -l
  curl -s '${url}/v1/named/places?prefix=San&sort=north'
  curl -s '${url}/v1/named/clock_changes.csv?timezone=Europe/Berlin&after=2026-01-01%2000:00:00'
  curl -s ${url}/v1/named/record_visit -H 'Idempotency-Key: visit-1' --json '{"params":{"place":1,"note":"nice"}}'   twice: one visit
  curl -s ${url}/db --json '{"SQL":"select name from place limit 3"}'   as DBSlayer's clients do
  curl -s ${url}/metrics
  ${url}/console   in a browser: what the gateway does
  ${namedDirectory}   the statements behind /v1/named: change one, and call it
  ${places.config}   the settings
  ${places.log}   the log
The database play is for tables of your own: docs/start/tutorial.md.
Stop both:
  scripts/demo stop`;
}

async function stop(places: Places): Promise<void> {
  const gateway = await stopGateway(places);
  const database = await stopDatabase(places);
  console.log(`dbhttpd: ${gateway ? 'stopped' : 'was not running'}`);
  console.log(
    `MariaDB: ${database ? 'stopped' : 'was not running'} (its data stay in ${places.database})`,
  );
}

async function remove(places: Places): Promise<void> {
  const gateway = await stopGateway(places);
  const database = await stopDatabase(places);
  console.log(`dbhttpd: ${gateway ? 'stopped' : 'was not running'}`);
  console.log(`MariaDB: ${database ? 'stopped' : 'was not running'}`);
  console.log(removeFiles(places));
}

const commands = { start, stop, remove } as const;

function shell(words: readonly string[]): string {
  return words.map((word) => (/^[\w./:=-]+$/.test(word) ? word : `'${word}'`)).join(' ');
}

try {
  const places = findPlaces(process.env);
  await commands[(process.argv[2] ?? 'start') as keyof typeof commands](places);
} catch (error) {
  console.error(`demo: ${error instanceof Error ? error.message : error}`);
  process.exitCode = 1;
}
