// What a server of several tells the account of its part, and what the account may do in spite of it, in words for --check; pure.
// Must not know how servers and grants are asked.
import type { Questions } from '../../shared/servers/ask-view.ts';
import type { ServerView } from '../../shared/servers/server-view.ts';
import { quoteAccount } from './account.ts';

/** One look at a server, and what could be asked for it. */
export type Part = {
  readonly view: ServerView;
  readonly questions: Pick<Questions, 'status'>;
  /** As CURRENT_USER() says it; null: it could not be asked. */
  readonly account: string | null;
  /** As SHOW GRANTS says them. */
  readonly grants: readonly string[];
};

/** Grants on everything with which an account writes though read_only is on. */
const passesReadOnly = {
  MariaDB: /^GRANT [^`']*\b(ALL PRIVILEGES|READ_ONLY ADMIN|SUPER)\b.* ON \*\.\* TO /i,
  MySQL: /^GRANT [^`']*\b(ALL PRIVILEGES|CONNECTION_ADMIN|SUPER)\b.* ON \*\.\* TO /i,
} as const;

/** Whom the server replicates from, as far as the account may see it. */
export function describeReplication({ view }: Part): string {
  const { following } = view;
  if (following.kind === 'somebody') {
    const names = following.sources.map(({ number, address }) =>
      number === null ? `${address}` : `server_id ${number}`,
    );
    return names.length === 0 ? 'yes' : `yes, from ${names.join(' and ')}`;
  }
  return following.kind === 'nobody' ? 'no' : 'unknown, the account may not see it';
}

/** Warnings: a grant that is missing, one that is too much, a replica that anybody may write to. */
export function findRoleSpots(part: Part): readonly string[] {
  return [...findUnseen(part), ...findUnstopped(part)];
}

function findUnseen({ view, questions, account }: Part): readonly string[] {
  const isMariadb = view.version.startsWith('MariaDB');
  const to = account === null ? 'the account' : quoteAccount(account);
  const found: string[] = [];
  if (view.galera === null && (questions.status?.columns ?? null) === null) {
    const right = isMariadb ? 'SLAVE MONITOR' : 'REPLICATION CLIENT';
    found.push(
      `the account cannot see whom the server replicates from, so that its role is told by what it has alone: GRANT ${right} ON *.* TO ${to}`,
    );
  }
  if (view.group !== null && view.group.state === null) {
    found.push(
      `the account cannot see the state of the group's members: GRANT SELECT ON performance_schema.replication_group_members TO ${to}`,
    );
  }
  return found;
}

function findUnstopped({ view, grants }: Part): readonly string[] {
  const flavour = view.version.startsWith('MariaDB') ? 'MariaDB' : 'MySQL';
  const rights = grants.flatMap((grant) => passesReadOnly[flavour].exec(grant)?.[1] ?? []);
  const found: string[] = [];
  if (rights.length > 0) {
    found.push(
      `read_only does not stop the account, which has ${rights[0]} on *.*: a former primary would take its writes`,
    );
  }
  if (view.following.kind === 'somebody' && !view.isReadOnly) {
    found.push(
      'read_only is off though it replicates: what is written there by mistake is nowhere else',
    );
  }
  return found;
}
