// Views and triggers whose effect on a session shows neither in a statement nor in the server's flags; pure.
// Must not know how their texts are fetched, nor what is done about them.

/** Something stored in a database, with its text as the server keeps it; null where the account may not read it. */
export type Stored = {
  readonly kind: 'view' | 'trigger' | 'routine';
  readonly name: string;
  readonly text: string | null;
};

// A lock, or an insert id set by hand: what MySQL and MariaDB change without a flag.
const unflagged = /\b(?:get_lock|release_lock|release_all_locks|last_insert_id)\s*\(\s*[^)\s]/i;
const releasesAll = /\brelease_all_locks\s*\(/i;

/** The views and triggers that do so themselves, or by routines that they call, as `kind name`, sorted. */
export function findBlindSpots(all: readonly Stored[]): readonly string[] {
  const tainted = taintedRoutines(all.filter(({ kind }) => kind === 'routine'));
  return all
    .filter(({ kind, text }) => kind !== 'routine' && isTainted(text, tainted))
    .map(({ kind, name }) => `${kind} ${name}`)
    .sort();
}

function taintedRoutines(routines: readonly Stored[]): ReadonlySet<string> {
  const tainted = new Set<string>();
  for (;;) {
    // Routines call each other: repeated until nothing more is found.
    const found = routines.filter(
      ({ name, text }) => !tainted.has(name.toLowerCase()) && isTainted(text, tainted),
    );
    if (found.length === 0) return tainted;
    for (const { name } of found) tainted.add(name.toLowerCase());
  }
}

function isTainted(text: string | null, routines: ReadonlySet<string>): boolean {
  if (text === null) return false;
  if (unflagged.test(text) || releasesAll.test(text)) return true;
  if (routines.size === 0) return false;
  // A name before a bracket may be a call; one that is none costs a line in a list, no more.
  const calls = text.toLowerCase().matchAll(/(?:`([^`]+)`|([\p{L}\p{N}_$]+))\s*\(/gu);
  return [...calls].some((call) => routines.has(call[1] ?? call[2] ?? ''));
}
