// What a worker cannot know of views and triggers for want of a grant, in words for --check; pure.
// Must not know how grants and views are fetched.
import { quoteAccount } from './account.ts';

/** What an account was granted, as SHOW GRANTS says it, and what it could not see. */
export type Sight = {
  readonly database: string;
  /** As CURRENT_USER() says it: name@host. */
  readonly account: string;
  readonly grants: readonly string[];
  /** Views of the database whose definition the account does not get. */
  readonly hiddenViews: readonly string[];
};

const writing = /^GRANT (?:[^`']*\b(?:ALL PRIVILEGES|INSERT|UPDATE|DELETE)\b)/i;
const seesTriggers = /^GRANT (?:[^`']*\b(?:ALL PRIVILEGES|TRIGGER)\b)/i;
/** A role's own grants are not listed by every server. */
const role = /^GRANT [`']/i;
const mostNamed = 10;

/** One warning for each grant that is missing: TRIGGER where the account writes, SHOW VIEW where there are views. */
export function findBlindSpots({
  database,
  account,
  grants,
  hiddenViews,
}: Sight): readonly string[] {
  const has = (pattern: RegExp) => grants.some((grant) => pattern.test(grant));
  const grant = (right: string) =>
    `GRANT ${right} ON \`${database}\`.* TO ${quoteAccount(account)}`;
  const found: string[] = [];
  if (has(writing) && !has(seesTriggers) && !has(role)) {
    found.push(
      `the account cannot see triggers, so that session_reset = auto does not know what they do: ${grant('TRIGGER')}`,
    );
  }
  if (hiddenViews.length > 0) {
    const named = hiddenViews.slice(0, mostNamed).join(', ');
    const more = hiddenViews.length > mostNamed ? ', …' : '';
    found.push(
      `the account cannot see what views consist of, so reads of them cost two resets, and read-only requests that name them are refused: ${grant('SHOW VIEW')} (${named}${more})`,
    );
  }
  return found;
}
