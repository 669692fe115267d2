// --check's questions to the databases: every server of every section is asked, described, and its connections are counted.
// Must not know what else --check looks at, nor where it is printed.

import { type Candidate, candidateKey, formatCandidate } from '../../shared/config/addresses.ts';
import type { Config, Sections } from '../../shared/config/config.ts';
import { type LedgerTable, parseLedgerTable } from '../../shared/idempotency-table.ts';
import { waysToSendPassword } from '../../shared/mysql/password-guard.ts';
import { type ExitCode, exitCodes } from '../../shared/process/exit-codes.ts';
import { type Judgement, judge, type Verdict } from '../../shared/servers/judge.ts';
import type { Seen } from '../../shared/servers/scene.ts';
import { primaryFilePath, readPrimaryFile } from '../primary/primary-file.ts';
import type { LedgerFacts } from './ledger-facts.ts';
import { describeReplication, findRoleSpots, type Part } from './role-spots.ts';
import {
  type Asked,
  askLedger,
  askServer,
  askViewAgain,
  type ServerFacts,
  type Unanswered,
} from './server-facts.ts';

/** Something wrong, and the exit status that it stands for. */
export type Finding = { readonly exitCode: ExitCode; readonly problem: string };

/** One server of one section. */
type Answer = {
  readonly section: Config;
  readonly candidate: Candidate;
  readonly asked: Asked<ServerFacts>;
  /** Of its table of idempotency keys, where this is the server that was asked for it. */
  readonly ledger: Asked<LedgerFacts> | null;
  /** What it is used for; null: its section has no other server. */
  readonly verdict: Verdict | null;
  /** What is wrong with the servers of the section together, where this is the one to tell it at. */
  readonly warning: string | null;
};

/** The table of idempotency keys that a section is to have, if any. */
export function ledgerOf({ idempotencyTable, database }: Config): LedgerTable | null {
  return idempotencyTable === null ? null : parseLedgerTable(idempotencyTable, database);
}

/**
 * Asks all servers at once, within 20 s. A server that cannot be reached is a fault where no other one of its section can be,
 * and else a warning among the lines.
 */
export async function checkDatabases(
  sections: Sections,
): Promise<{ readonly lines: readonly string[]; readonly findings: readonly Finding[] }> {
  const answers = await Promise.all(sections.map(askSection));
  const isAlone = answers.flat().length === 1;
  const lines: string[] = [];
  const findings: Finding[] = [];
  for (const own of answers) {
    const isServed = own.some(({ asked }) => asked.ok);
    for (const answer of own) {
      findings.push(...findProblems(answer, isServed, isAlone));
      if (!isServed) continue;
      lines.push('', ...(isAlone ? [] : [nameOf(answer)]), ...describeCandidate(answer, sections));
    }
  }
  return { lines, findings };
}

function nameOf({ section, candidate }: Answer): string {
  return `[${section.section}] ${formatCandidate(candidate)}`;
}

async function askSection(section: Config): Promise<readonly Answer[]> {
  const { candidates } = section;
  const asked = await Promise.all(candidates.map((candidate) => askServer(section, candidate)));
  const judged = candidates.length === 1 ? null : await judgeSection(section, asked);
  const isServed = (one: Asked<ServerFacts>) => one.ok;
  const answers = candidates.map((candidate, at): Answer => {
    const isFirst = at === asked.findIndex(isServed);
    return {
      section,
      candidate,
      asked: asked[at] as Asked<ServerFacts>,
      ledger: null,
      verdict: judged?.verdicts[at] ?? null,
      warning: isFirst && judged !== null ? warningOf(judged) : null,
    };
  });
  const table = ledgerOf(section);
  const keeper = answers[judged?.primary ?? -1] ?? findKeeper(answers);
  if (table === null || keeper === undefined) return answers;
  const ledger = await askLedger(section, keeper.candidate, table);
  return answers.map((answer) => (answer === keeper ? { ...answer, ledger } : answer));
}

/** Judges them as a worker that has just been started does, with what an earlier instance remembers. */
async function judgeSection(
  section: Config,
  asked: readonly Asked<ServerFacts>[],
): Promise<Judgement> {
  const seen = section.candidates.map(async (candidate, at): Promise<Seen> => {
    const first = asked[at] as Asked<ServerFacts>;
    const again = first.ok ? await askViewAgain(section, candidate) : first;
    if (!again.ok) return { view: null, reason: again.failure.reason, number: null };
    const part = first.ok ? first.facts.part : null;
    const earlier = part === null ? [] : [part.view];
    const address = formatCandidate(candidate);
    return { view: again.facts, earlier, address, provenBy: null, notYet: null };
  });
  const content = readPrimaryFile(primaryFilePath(section));
  return judge(await Promise.all(seen), null, content.kind === 'memory' ? content.memory : null);
}

function warningOf({ primary, warning }: Judgement): string | null {
  return warning ?? (primary === null ? 'none of the servers of the section takes writes' : null);
}

/** Sections that share a server may share the table too: each of them removes the keys of all. */
function findShorterKeep(section: Config, sharing: readonly Config[]): readonly string[] {
  const table = ledgerOf(section)?.quoted;
  const longer = sharing.filter(
    (one) => ledgerOf(one)?.quoted === table && one.idempotencyKeepMs > section.idempotencyKeepMs,
  );
  const names = longer.map((one) => `[${one.section}]`).join(', ');
  return longer.length === 0
    ? []
    : [
        `idempotency_keep is shorter than that of ${names}, which has the same idempotency_table: keys are removed after the shortest time`,
      ];
}

/** Where the table is looked at when nobody takes writes: the first that answers, better one that is writable. */
function findKeeper(answers: readonly Answer[]): Answer | undefined {
  const isWritable = ({ asked }: Answer) => asked.ok && !asked.facts.isReadOnly;
  return answers.find(isWritable) ?? answers.find(({ asked }) => asked.ok);
}

function findProblems(answer: Answer, isServed: boolean, isAlone: boolean): readonly Finding[] {
  const { section, candidate, asked, ledger } = answer;
  const unreachable = ({ failure }: Unanswered): Finding => {
    const place = isAlone ? '' : `[${section.section}] `;
    const problem = `${place}${describeFailure(section, candidate, failure)}`;
    return { exitCode: exitCodes.unavailable, problem };
  };
  if (!asked.ok) return isServed ? [] : [unreachable(asked)];
  const { initSqlProblem } = asked.facts;
  const refused =
    initSqlProblem === null ? [] : [`init_sql is refused by the server: ${initSqlProblem}`];
  const faults = ledger?.ok === true ? ledger.facts.faults : [];
  const quoted = ledgerOf(section)?.quoted;
  const problems = [...refused, ...faults.map((fault) => `idempotency_table ${quoted}: ${fault}`)];
  const place = isAlone ? '' : `${nameOf(answer)}: `;
  return [
    ...problems.map((one) => ({ exitCode: exitCodes.configInvalid, problem: `${place}${one}` })),
    ...(ledger?.ok === false ? [unreachable(ledger)] : []),
  ];
}

function describeFailure(
  { user }: Config,
  candidate: Candidate,
  { kind, errno, reason }: Unanswered['failure'],
): string {
  const where = formatCandidate(candidate);
  switch (kind) {
    case 'refused':
      return `database ${where} refuses the account ${user}: ${reason} (${errno})`;
    case 'unusable':
    case 'tls':
      return `database ${where}: ${reason}`;
    case 'silent':
    case 'unreachable':
      return `database unreachable: ${where}: ${reason}`;
    default:
      return kind satisfies never;
  }
}

/** One server of a section, in lines: what it is, and what it must admit. */
function describeCandidate(
  { section, candidate, asked, ledger, verdict, warning }: Answer,
  sections: Sections,
): readonly string[] {
  if (!asked.ok) return [`warning: ${describeFailure(section, candidate, asked.failure)}`];
  const { facts } = asked;
  const key = candidateKey(candidate);
  const sharing = sections.filter((one) => one.candidates.map(candidateKey).includes(key));
  const total = budgetOf(sharing);
  const ofAccount = budgetOf(sharing.filter(({ user }) => user === section.user));
  const ledgerWarnings = ledger?.ok === true ? ledger.facts.warnings : [];
  return [
    `server: ${facts.flavour} ${facts.version}`,
    ...describePart(verdict, facts.part),
    `connections: ${describeConnections(sharing)} = ${total.needed}` +
      ` of max_connections ${facts.maxConnections}${ownLimit(facts)}`,
    `restart: up to ${total.overlap} more while an old instance finishes what is in flight` +
      ` = ${total.needed + total.overlap}`,
    ...[
      ...(warning === null ? [] : [warning]),
      ...(facts.isRemembered ? [rememberedLogin] : []),
      ...(facts.part === null ? [] : findRoleSpots(facts.part)),
      ...facts.blindSpots,
      ...facts.excessGrants,
      ...ledgerWarnings,
      ...(ledger === null ? [] : findShorterKeep(section, sharing)),
    ].map((spot) => `warning: ${spot}`),
    ...warnOf('the server', facts.maxConnections, total),
    ...warnOf('the account', facts.maxUserConnections, ofAccount),
  ];
}

const rememberedLogin =
  'the login works only while the server remembers the password, which it forgets when it restarts, at FLUSH PRIVILEGES and ' +
  `when the password changes: ${waysToSendPassword}`;

/** How far a replica is behind is known to a gateway only, which has asked the primary for a while. */
function describePart(verdict: Verdict | null, part: Part | null): readonly string[] {
  if (verdict === null || part === null) return [];
  return [`role: ${verdict.role} (${verdict.reason})`, `replicates: ${describeReplication(part)}`];
}

/** Connections to one server: of all gateways, and how many more while one of them is started anew. */
type Budget = { readonly needed: number; readonly overlap: number };

function budgetOf(sections: readonly Config[]): Budget {
  let [needed, overlap] = [0, 0];
  for (const { gateways, workers, pool, candidates } of sections) {
    needed += gateways * workers * (pool + 2);
    // Idle connections close as the old instance begins to drain; a probe too, but where it looks for the primary.
    overlap += workers * (pool + (candidates.length > 1 ? 2 : 1));
  }
  return { needed, overlap };
}

function describeConnections(sections: readonly Config[]): string {
  const isShared = sections.length > 1;
  return sections
    .map(({ section, gateways, workers, pool }) => {
      const many = gateways > 1 ? `${gateways} gateways x ` : '';
      const whose = isShared ? ` [${section}]` : '';
      return `${many}${workers} workers x (${pool} pool + 1 control + 1 probe)${whose}`;
    })
    .join(' + ');
}

function ownLimit({ maxUserConnections: most }: ServerFacts): string {
  return most === null ? '' : ` and the account's max_user_connections ${most}`;
}

function warnOf(
  whose: string,
  most: number | null,
  { needed, overlap }: Budget,
): readonly string[] {
  if (most === null || needed + overlap <= most) return [];
  return needed > most
    ? [`warning: ${whose} does not admit that many connections: lower workers or pool`]
    : [`warning: ${whose} may not admit what a restart under load needs`];
}
