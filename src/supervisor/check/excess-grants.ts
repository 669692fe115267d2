// Grants with which an account does more than the gateway lets it, in words for --check; pure.

/** Each lets a stored function, or a statement, reach beyond the transaction in which it runs: files, and the server's variables. */
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

/** One warning for each right that the gateway never needs, and that a READ ONLY transaction does not bound. @param grants as SHOW GRANTS says them */
export function findExcessGrants(grants: readonly string[]): readonly string[] {
  const rights = grants.flatMap((grant) => everywhere.exec(grant)?.[1] ?? []);
  return reaching
    .filter(({ pattern }) => rights.some((list) => pattern.test(list)))
    .map(
      ({ right, reach }) =>
        `the account has ${right} on *.*, so it reaches ${reach}, which read_only and READ ONLY transactions do not protect: use an account without it`,
    );
}
