// The grants of the gateway's account: what it lacks to see what it should, and what it has too much of. Pure.
import type { Questions } from '../../shared/servers/ask-view.ts';
import type { ServerView } from '../../shared/servers/server-view.ts';

/** The account of a section on one server, and what it cannot see. */
export type Account = {
  /** As CURRENT_USER() reports it: name@host, without quotes. */
  readonly name: string;
  /** The rows of SHOW GRANTS. */
  readonly grants: readonly string[];
  /** Views of the database whose definition the account does not get. */
  readonly hiddenViews: readonly string[];
};

/** 'user'@'host', for GRANT. @param account as CURRENT_USER() reports it */
export function quoteAccount(account: string): string {
  const at = account.lastIndexOf('@');
  return `${quote(account.slice(0, at))}@${quote(account.slice(at + 1))}`;
}

function quote(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`;
}

const writing = /\b(?:ALL PRIVILEGES|INSERT|UPDATE|DELETE)\b/i;
const seesTriggers = /\b(?:ALL PRIVILEGES|TRIGGER)\b/i;
/** The rights of a grant: its text up to the first name. They are empty for a role, whose own grants not every server lists. */
const rightsOf = /^GRANT ([^`']*)/i;
const maxNamedViews = 10;

/** One warning for each grant that `session_reset = auto` lacks: TRIGGER if the account writes, SHOW VIEW if there are views. */
export function findMissingGrants(database: string, account: Account): readonly string[] {
  const { name, grants, hiddenViews } = account;
  const rights = grants.flatMap((grant) => rightsOf.exec(grant)?.[1] ?? []);
  const has = (pattern: RegExp) => rights.some((list) => pattern.test(list));
  const grant = (right: string) => `GRANT ${right} ON \`${database}\`.* TO ${quoteAccount(name)}`;
  const found: string[] = [];
  if (has(writing) && !has(seesTriggers) && !rights.includes('')) {
    found.push(
      `the account cannot see triggers, so that session_reset = auto does not know what they do: ${grant('TRIGGER')}`,
    );
  }
  if (hiddenViews.length > 0) {
    const named = hiddenViews.slice(0, maxNamedViews).join(', ');
    const more = hiddenViews.length > maxNamedViews ? ', …' : '';
    found.push(
      `the account cannot see what views consist of, so reads of them cost two resets, and read-only requests that name them are refused: ${grant('SHOW VIEW')} (${named}${more})`,
    );
  }
  return found;
}

/** Rights by which a stored function or a statement reaches beyond its transaction: files, and the server's variables. */
const reaching = [
  { pattern: /\bALL PRIVILEGES\b/i, right: 'ALL PRIVILEGES', reach: 'files and global variables' },
  { pattern: /\bFILE\b/i, right: 'FILE', reach: "files on the server's machine" },
  { pattern: /\bSUPER\b/i, right: 'SUPER', reach: 'global variables' },
  {
    pattern: /\bSYSTEM_VARIABLES_ADMIN\b/i,
    right: 'SYSTEM_VARIABLES_ADMIN',
    reach: 'global variables',
  },
] as const;
const everywhere = /^GRANT ([^`']*) ON \*\.\* TO /i;

/** One warning for each right that the gateway never needs and that a READ ONLY transaction does not limit. */
export function findExcessGrants({ grants }: Account): readonly string[] {
  const rights = grants.flatMap((grant) => everywhere.exec(grant)?.[1] ?? []);
  return reaching
    .filter(({ pattern }) => rights.some((list) => pattern.test(list)))
    .map(
      ({ right, reach }) =>
        `the account has ${right} on *.*, so it reaches ${reach}, which read_only and READ ONLY transactions do not protect: use an account without it`,
    );
}

/** Rights on *.* with which an account writes although read_only is on. */
const passesReadOnly = {
  MariaDB: /\b(?:ALL PRIVILEGES|READ_ONLY ADMIN|SUPER)\b/i,
  MySQL: /\b(?:ALL PRIVILEGES|CONNECTION_ADMIN|SUPER)\b/i,
} as const;

/** One server of several: how it sees itself, and the question for its replication status, if the account may ask it. */
export type Member = {
  readonly view: ServerView;
  readonly questions: Pick<Questions, 'status'>;
};

/** Warnings for one server of several: a missing grant, an excessive one, a replica that takes writes. Null: the account is unknown. */
export function findRoleWarnings(
  { view, questions }: Member,
  account: Account | null,
): readonly string[] {
  const flavour = view.version.startsWith('MariaDB') ? 'MariaDB' : 'MySQL';
  const to = account === null ? 'the account' : quoteAccount(account.name);
  const found: string[] = [];
  if (view.galera === null && (questions.status?.columns ?? null) === null) {
    const right = flavour === 'MariaDB' ? 'SLAVE MONITOR' : 'REPLICATION CLIENT';
    found.push(
      `the account cannot see what the server replicates from, so the server's role is derived from its transactions alone: GRANT ${right} ON *.* TO ${to}`,
    );
  }
  if (view.group !== null && view.group.state === null) {
    found.push(
      `the account cannot see the state of the group's members: GRANT SELECT ON performance_schema.replication_group_members TO ${to}`,
    );
  }
  const grants = account?.grants ?? [];
  const rights = grants.flatMap((grant) => everywhere.exec(grant)?.[1] ?? []);
  const passing = rights.flatMap((list) => passesReadOnly[flavour].exec(list)?.[0] ?? []);
  if (passing.length > 0) {
    found.push(
      `read_only does not stop the account, which has ${passing[0]} on *.*: a former primary would take its writes`,
    );
  }
  if (view.following.kind === 'listed' && !view.isReadOnly) {
    found.push(
      'read_only is off on a replica: what is written there by mistake is on no other server',
    );
  }
  return found;
}
