// One client process of the drivers' measurement: point queries by @planetscale/database through a gateway, or by mysql2 directly to the
// server. Arguments: `driver` and a URL, or `mysql2` and host, port, user, password, database. Prints one line of JSON: queries, seconds,
// cpuUs, errors, and the number of queries before these.
import { Client } from '@planetscale/database';
import mysql from 'mysql2/promise';

const atOnce = 32;
/** After this many queries, the code is compiled for good, here and in the gateway. */
const warmQueries = 20_000;
const maxWarmMs = 15_000;
const countedMs = 2000;
const items = 100_000;
const statement = 'select id, number, name, price, made from item where id = ?';

/** Asks for one row, and resolves to whether it came. */
type Ask = (id: number) => Promise<boolean>;

function askByDriver(url: string): Ask {
  const client = new Client({ url });
  return async (id) => (await client.execute(statement, [id])).rows.length === 1;
}

function askDirectly([host, port, user, password, database]: readonly string[]): Ask {
  const pool = mysql.createPool({
    host: `${host}`,
    port: Number(port),
    user: `${user}`,
    password: `${password}`,
    database: `${database}`,
    connectionLimit: 20,
  });
  return async (id) => {
    const [rows] = await pool.query(statement, [id]);
    return Array.isArray(rows) && rows.length === 1;
  };
}

/** Keeps this many queries in flight until the time is over, or enough have been sent. */
async function load(ask: Ask, ms: number, enough = Number.POSITIVE_INFINITY) {
  const end = performance.now() + ms;
  let queries = 0;
  let errors = 0;
  const one = async (from: number) => {
    for (let id = from; performance.now() < end && queries < enough; id += atOnce) {
      if (!(await ask(1 + (id % items)))) errors += 1;
      queries += 1;
    }
  };
  await Promise.all(Array.from({ length: atOnce }, (_, from) => one(from * 997)));
  return { queries, errors };
}

const [, , kind = '', ...where] = process.argv;
const ask = kind === 'driver' ? askByDriver(where[0] ?? '') : askDirectly(where);
const warm = await load(ask, maxWarmMs, warmQueries);
const begun = { at: performance.now(), cpu: process.cpuUsage() };
const { queries, errors } = await load(ask, countedMs);
const { user, system } = process.cpuUsage(begun.cpu);
const seconds = (performance.now() - begun.at) / 1000;
process.stdout.write(
  JSON.stringify({ queries, seconds, cpuUs: user + system, errors, before: warm.queries }),
);
process.exit(0);
