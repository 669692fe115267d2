// The databases of --check: it connects to every server of every section, describes it, and adds up the connections.
import { type Candidate, candidateKey, formatCandidate } from '../../shared/config/addresses.ts';
import type { Config, Sections } from '../../shared/config/config.ts';
import { initStatements } from '../../shared/database/connection-settings.ts';
import {
  type IdempotencyTable,
  parseIdempotencyTable,
} from '../../shared/database/idempotency-table.ts';
import { fetchRows, RefusedError } from '../../shared/mysql/commands.ts';
import type { ConnectFailure } from '../../shared/mysql/connect-failure.ts';
import type { Connection } from '../../shared/mysql/connection.ts';
import { waysToSendPassword } from '../../shared/mysql/handshake.ts';
import { exitCodes } from '../../shared/process/exit-codes.ts';
import { askView, prepareQuestions } from '../../shared/servers/ask-view.ts';
import { type Judgement, judge, type Verdict } from '../../shared/servers/judge.ts';
import type { CandidateState } from '../../shared/servers/scene.ts';
import type { ServerView } from '../../shared/servers/server-view.ts';
import { primaryFilePath, readPrimaryFile } from '../primary/primary-file.ts';
import { type Asked, ask, tryStatements } from './ask.ts';
import {
  type Account,
  findExcessGrants,
  findMissingGrants,
  findRoleWarnings,
  type Member,
} from './grants.ts';
import { examineTable, type TableFindings } from './idempotency-table.ts';
import { type Finding, fault, placeOf, type ServerReport, warning } from './report.ts';

/** A server's report about itself. */
type ServerFacts = {
  readonly flavour: 'MySQL' | 'MariaDB';
  readonly version: string;
  readonly maxConnections: number;
  /** The account's own limit; null: it has none. */
  readonly maxUserConnections: number | null;
  /** Whether the login works only while the server remembers the password. */
  readonly isRemembered: boolean;
  /** Why the server refused `init_sql`. */
  readonly initSqlProblem: string | null;
  /** A character set of the session that `init_sql` has changed, as `character_set_client = latin1`; null: none. */
  readonly foreignCharacterSet: string | null;
  /** Null: the server refused to report it. */
  readonly account: Account | null;
  readonly isReadOnly: boolean;
  /** Null: its section has no other server. */
  readonly member: Member | null;
  /** Whether its log lacks what it replicates (MariaDB without log_slave_updates), and its section has other servers. */
  readonly logsOnlyOwn: boolean;
};

/** One server of one section. */
type Answer = {
  readonly section: Config;
  readonly candidate: Candidate;
  readonly asked: Asked<ServerFacts>;
  /** The table of idempotency keys, for the server on which it was examined. */
  readonly table: Asked<TableFindings> | null;
  /** A gateway's use for it; null: its section has no other server. */
  readonly verdict: Verdict | null;
  /** A fault of the section's servers together, for the first that can be reached. */
  readonly warning: string | null;
};

/** The table of idempotency keys of a section; null: it has none. */
export function tableOf({ idempotencyTable, database }: Config): IdempotencyTable | null {
  return idempotencyTable === null ? null : parseIdempotencyTable(idempotencyTable, database);
}

/** The reports of the servers, and the one of each section on which its statements are tried. */
export type ExaminedDatabases = {
  readonly servers: readonly ServerReport[];
  readonly findings: readonly Finding[];
  readonly holders: ReadonlyMap<string, Candidate>;
};

/**
 * Asks all servers at once, within 20 s. An unreachable server is a fault if no other server of its section can be reached, or
 * else a warning.
 */
export async function examineDatabases(sections: Sections): Promise<ExaminedDatabases> {
  const answers = await Promise.all(sections.map(askSection));
  const servers: ServerReport[] = [];
  const findings: Finding[] = [];
  const holders = new Map<string, Candidate>();
  for (const { own, holder } of answers) {
    if (holder !== null) holders.set(holder.section.section, holder.candidate);
    const isServed = own.some(({ asked }) => asked.ok);
    for (const answer of own) {
      const { section, candidate } = answer;
      const server = formatCandidate(candidate);
      findings.push(
        ...findFaults(answer, server, isServed),
        ...findWarnings(answer, server, isServed, sections),
      );
      if (!isServed) continue;
      servers.push({
        section: section.section,
        server,
        facts: summarize(answer, sections),
        lines: describeServer(answer, sections),
      });
    }
  }
  return { servers, findings, holders };
}

/** The answers of a section's servers, and the one that holds its tables for writes; null: none can be reached. */
type SectionAnswers = { readonly own: readonly Answer[]; readonly holder: Answer | null };

async function askSection(section: Config): Promise<SectionAnswers> {
  const { candidates } = section;
  const asked = await Promise.all(
    candidates.map((candidate) =>
      ask(section, candidate, (connection) => fetchFacts(connection, section)),
    ),
  );
  const judged = candidates.length === 1 ? null : await judgeSection(section, asked);
  const first = asked.findIndex(({ ok }) => ok);
  const answers = candidates.map(
    (candidate, at): Answer => ({
      section,
      candidate,
      asked: asked[at] as Asked<ServerFacts>,
      table: null,
      verdict: judged?.verdicts[at] ?? null,
      warning: at === first && judged !== null ? warningOf(judged) : null,
    }),
  );
  const table = tableOf(section);
  const holder = answers[judged?.primary ?? -1] ?? findTableHolder(answers) ?? null;
  if (table === null || holder === null) return { own: answers, holder };
  const examined = await ask(section, holder.candidate, async (connection) => {
    // init_sql may choose the role that has the rights. Its refusal is a finding of its own.
    await tryStatements(connection, initStatements(section));
    return examineTable(connection, table, section.idempotencyKeepMs);
  });
  const own = answers.map((answer) =>
    answer === holder ? { ...answer, table: examined } : answer,
  );
  return { own, holder };
}

/** Judges the servers as a worker that has just been started does, with the primary that an earlier instance remembered. */
async function judgeSection(
  section: Config,
  asked: readonly Asked<ServerFacts>[],
): Promise<Judgement> {
  const seen = section.candidates.map(async (candidate, at): Promise<CandidateState> => {
    const first = asked[at] as Asked<ServerFacts>;
    const again = first.ok ? await askViewAgain(section, candidate) : first;
    if (!again.ok) return { view: null, reason: again.failure.reason, number: null };
    const member = first.ok ? first.facts.member : null;
    const earlier = member === null ? [] : [member.view];
    const address = formatCandidate(candidate);
    return { view: again.facts, earlier, address, provenBy: null, notYet: null };
  });
  const content = readPrimaryFile(primaryFilePath(section));
  const memory = content.kind === 'memory' ? content.memory : null;
  return judge(await Promise.all(seen), { memory, reference: null, isInUse: false });
}

function warningOf({ primary, warning }: Judgement): string | null {
  return warning ?? (primary === null ? 'none of the servers of the section takes writes' : null);
}

/** The server on which the table is examined, and statements are tried, if the section has no primary: the first writable one, or else the first. */
function findTableHolder(answers: readonly Answer[]): Answer | undefined {
  const isWritable = ({ asked }: Answer) => asked.ok && !asked.facts.isReadOnly;
  return answers.find(isWritable) ?? answers.find(({ asked }) => asked.ok);
}

function findFaults(answer: Answer, server: string, isServed: boolean): readonly Finding[] {
  const { section, candidate, asked, table } = answer;
  const invalid = (key: string, problem: string) =>
    fault(exitCodes.configInvalid, placeOf(section, key, server), problem);
  const unreachable = (failure: ConnectFailure) =>
    fault(
      exitCodes.unavailable,
      placeOf(section, hostKey(candidate), server),
      describeFailure(section, server, failure),
    );
  if (!asked.ok) return isServed ? [] : [unreachable(asked.failure)];
  const { initSqlProblem, foreignCharacterSet } = asked.facts;
  const tableFaults = table?.ok === true ? table.facts.faults : [];
  const quoted = tableOf(section)?.quoted;
  return [
    ...(initSqlProblem === null
      ? []
      : [invalid('init_sql', `init_sql is refused by the server: ${initSqlProblem}`)]),
    ...(foreignCharacterSet === null
      ? []
      : [
          invalid(
            'init_sql',
            `init_sql changes the character set of the session (${foreignCharacterSet}): the gateway sends and expects UTF-8, and only utf8mb4 works, with any collation`,
          ),
        ]),
    ...tableFaults.map((one) =>
      invalid('idempotency_table', `idempotency_table ${quoted}: ${one}`),
    ),
    ...(table?.ok === false ? [unreachable(table.failure)] : []),
  ];
}

function hostKey({ socket }: Candidate): string {
  return socket === null ? 'host' : 'socket';
}

function describeFailure({ user }: Config, server: string, failure: ConnectFailure): string {
  const { kind, errno, reason, hint } = failure;
  const numbered = `${reason} (${errno})${hint === null ? '' : `: ${hint}`}`;
  switch (kind) {
    case 'login refused':
      return `database ${server} refuses the account ${user}: ${numbered}`;
    case 'server unavailable':
      return `database ${server} accepts no connection now: ${numbered}`;
    case 'server unusable':
    case 'tls failed':
      return `database ${server}: ${reason}`;
    case 'name unresolved':
      return `the name of database ${server} cannot be resolved: ${reason}`;
    case 'server silent':
    case 'server unreachable':
      return `database unreachable: ${server}: ${reason}`;
    default:
      return kind satisfies never;
  }
}

const rememberedLogin =
  'the login works only while the server remembers the password, which it forgets when it restarts, at FLUSH PRIVILEGES and ' +
  `when the password changes: ${waysToSendPassword}`;

const ownLogOnly =
  'log_slave_updates is off: replies of a replica and after a failover may be unverified, and a token of a lost write is not reported as lost';

function findWarnings(
  answer: Answer,
  server: string,
  isServed: boolean,
  sections: Sections,
): readonly Finding[] {
  const { section, candidate, asked, table } = answer;
  const warn = (key: string, messages: readonly string[]) =>
    messages.map((message) => warning(placeOf(section, key, server), message));
  if (!asked.ok) {
    const message = describeFailure(section, server, asked.failure);
    return isServed ? warn(hostKey(candidate), [message]) : [];
  }
  const { account, isRemembered, maxConnections, maxUserConnections } = asked.facts;
  const { member, logsOnlyOwn } = asked.facts;
  const sharing = sectionsOn(candidate, sections);
  const ofAccount = sharing.filter(({ user }) => user === section.user);
  const needsGrants = account !== null && section.sessionReset !== 'always';
  return [
    ...warn('host', answer.warning === null ? [] : [answer.warning]),
    ...warn('host', logsOnlyOwn ? [ownLogOnly] : []),
    ...warn('password', isRemembered ? [rememberedLogin] : []),
    ...warn('user', [
      ...(member === null ? [] : findRoleWarnings(member, account)),
      ...(needsGrants ? findMissingGrants(section.database, account) : []),
      ...(account === null ? [] : findExcessGrants(account)),
    ]),
    ...warn('idempotency_table', table?.ok === true ? table.facts.warnings : []),
    ...warn('idempotency_keep', table === null ? [] : findShorterKeep(section, sharing)),
    ...warn('pool', [
      ...findTooMany('the server', maxConnections, budgetOf(sharing)),
      ...findTooMany('the account', maxUserConnections, budgetOf(ofAccount)),
    ]),
  ];
}

/** Sections that share a server may also share the table. Each of them removes the keys of all. */
function findShorterKeep(section: Config, sharing: readonly Config[]): readonly string[] {
  const table = tableOf(section)?.quoted;
  const longer = sharing.filter(
    (one) => tableOf(one)?.quoted === table && one.idempotencyKeepMs > section.idempotencyKeepMs,
  );
  const names = longer.map((one) => `[${one.section}]`).join(', ');
  return longer.length === 0
    ? []
    : [
        `idempotency_keep is shorter than that of ${names}, which has the same idempotency_table: keys are removed after the shortest time`,
      ];
}

/** The facts of a server for --check --json; null: it could not be reached. */
function summarize(
  { candidate, asked, verdict }: Answer,
  sections: Sections,
): ServerReport['facts'] {
  if (!asked.ok) return null;
  const { flavour, version, maxConnections, maxUserConnections } = asked.facts;
  const { needed, overlap } = budgetOf(sectionsOn(candidate, sections));
  return {
    flavour,
    version,
    role: verdict?.role ?? null,
    needed,
    restart: needed + overlap,
    maxConnections,
    maxUserConnections,
  };
}

function describeServer({ candidate, asked, verdict }: Answer, sections: Sections) {
  if (!asked.ok) return [];
  const { flavour, version, maxConnections, maxUserConnections, member } = asked.facts;
  const sharing = sectionsOn(candidate, sections);
  const { needed, overlap } = budgetOf(sharing);
  const ownLimit =
    maxUserConnections === null
      ? ''
      : ` and the account's max_user_connections ${maxUserConnections}`;
  return [
    `server: ${flavour} ${version}`,
    ...(verdict === null || member === null
      ? []
      : [
          `role: ${verdict.role} (${verdict.reason})`,
          `replicates: ${describeReplication(member)}`,
        ]),
    `connections: ${describeConnections(sharing)} = ${needed} of max_connections ${maxConnections}${ownLimit}`,
    `restart: up to ${overlap} more while an old instance finishes what is in flight = ${needed + overlap}`,
  ];
}

/** Which servers it replicates from, as far as the account may see it. Only a running gateway knows its lag. */
function describeReplication({ view: { following } }: Member): string {
  if (following.kind === 'none') return 'no';
  if (following.kind !== 'listed') return 'unknown, the account may not see it';
  const names = following.sources.map(({ number, address }) =>
    number === null ? `${address}` : `server_id ${number}`,
  );
  return names.length === 0 ? 'yes' : `yes, from ${names.join(' and ')}`;
}

function sectionsOn(candidate: Candidate, sections: Sections): readonly Config[] {
  const key = candidateKey(candidate);
  return sections.filter((one) => one.candidates.map(candidateKey).includes(key));
}

/** Connections to one server: those of all gateways, and how many more while one of them is restarted. */
type Budget = { readonly needed: number; readonly overlap: number };

function budgetOf(sections: readonly Config[]): Budget {
  let [needed, overlap] = [0, 0];
  for (const { gateways, workers, pool, candidates } of sections) {
    needed += gateways * workers * (pool + 2);
    // Idle connections close as the old instance begins to drain, and so does a probe unless it looks for the primary.
    overlap += workers * (pool + (candidates.length > 1 ? 2 : 1));
  }
  return { needed, overlap };
}

function describeConnections(sections: readonly Config[]): string {
  const isShared = sections.length > 1;
  return sections
    .map(({ section, gateways, workers, pool }) => {
      const many = gateways > 1 ? `${gateways} gateways x ` : '';
      const name = isShared ? ` [${section}]` : '';
      return `${many}${workers} workers x (${pool} pool + 1 control + 1 probe)${name}`;
    })
    .join(' + ');
}

function findTooMany(
  limiting: string,
  max: number | null,
  { needed, overlap }: Budget,
): readonly string[] {
  if (max === null || needed + overlap <= max) return [];
  return needed > max
    ? [`${limiting} does not admit that many connections: lower workers or pool`]
    : [`${limiting} may not admit what a restart under load needs`];
}

/** Asks a server for its view once more: servers cannot be asked at the same moment, so each is compared with its earlier view. */
export function askViewAgain(config: Config, candidate: Candidate): Promise<Asked<ServerView>> {
  return ask(config, candidate, async (connection) =>
    askView(connection, await prepareQuestions(connection)),
  );
}

const factsQuery =
  'select version(), @@max_connections, @@session.max_user_connections, @@global.read_only';

async function fetchFacts(connection: Connection, config: Config): Promise<ServerFacts> {
  const [row = []] = await fetchRows(connection, factsQuery);
  const [version, maxConnections, maxUserConnections, readOnly] = row;
  const member = config.candidates.length === 1 ? null : await fetchMember(connection);
  return {
    flavour: connection.flavour === 'mariadb' ? 'MariaDB' : 'MySQL',
    version: version ?? '',
    maxConnections: Number(maxConnections),
    // MariaDB and MySQL report 0 if neither account nor server has a limit.
    maxUserConnections: Number(maxUserConnections) || null,
    isRemembered: connection.isRemembered,
    account: await fetchAccount(connection),
    ...(await tryInitSql(connection, config)),
    isReadOnly: readOnly === '1',
    member,
    logsOnlyOwn: member !== null && (await hasOnlyOwnLog(connection, member)),
  };
}

/** A node of Galera has a position of its cluster instead. */
async function hasOnlyOwnLog(connection: Connection, { view }: Member): Promise<boolean> {
  if (connection.flavour !== 'mariadb' || view.galera !== null) return false;
  const [row] = await fetchRows(connection, 'select @@global.log_slave_updates');
  return row?.[0] === '0';
}

const characterSets = [
  'character_set_client',
  'character_set_connection',
  'character_set_results',
] as const;

/**
 * Runs `init_sql` in a session as a worker begins it, and looks at the character set that is left. A proxy may not report it: then nothing
 * is known.
 */
async function tryInitSql(
  connection: Connection,
  config: Config,
): Promise<Pick<ServerFacts, 'initSqlProblem' | 'foreignCharacterSet'>> {
  const isSet = config.initSql !== null;
  const statements = [...(isSet ? ['set names utf8mb4'] : []), ...initStatements(config)];
  const initSqlProblem = await tryStatements(connection, statements);
  const isKnown = isSet && initSqlProblem === null;
  return {
    initSqlProblem,
    foreignCharacterSet: isKnown ? await findForeignCharacterSet(connection) : null,
  };
}

async function findForeignCharacterSet(connection: Connection): Promise<string | null> {
  const query = `select ${characterSets.map((name) => `@@${name}`).join(', ')}`;
  const [values] = await fetchRows(connection, query).catch((error) => {
    if (error instanceof RefusedError) return [];
    throw error;
  });
  if (values?.length !== characterSets.length) return null;
  // NULL is a character set of results: each column's own, which the gateway converts.
  const foreign = characterSets.findIndex((_, at) => (values[at] ?? 'utf8mb4') !== 'utf8mb4');
  return foreign < 0 ? null : `${characterSets[foreign]} = ${values[foreign]}`;
}

async function fetchMember(connection: Connection): Promise<Member> {
  const questions = await prepareQuestions(connection);
  return { questions, view: await askView(connection, questions) };
}

const hiddenViewsQuery = `
  select table_name from information_schema.views
   where table_schema = database() and (view_definition is null or view_definition = '')`;

async function fetchAccount(connection: Connection): Promise<Account | null> {
  try {
    const [[name] = []] = await fetchRows(connection, 'select current_user()');
    const grants = await fetchRows(connection, 'show grants');
    const views = await fetchRows(connection, hiddenViewsQuery);
    return {
      name: name ?? '',
      grants: grants.map(([grant]) => grant ?? ''),
      hiddenViews: views.map(([view]) => view ?? ''),
    };
  } catch (error) {
    if (!(error instanceof RefusedError)) throw error;
    // A server that answers everything else is not at fault for this.
    return null;
  }
}
