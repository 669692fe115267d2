// An error's name by its number, as programs compare it (ER_DUP_ENTRY).
// Must not know what an error does to a request.
import { errorNameTable } from './error-name-table.ts';

const names = parseNames(errorNameTable);

/**
 * MySQL's name of an error. Where none is known, or MySQL and MariaDB call different errors by this number, it is
 * `ER_` and the number, so that there always is one, and never another error's.
 */
export function errorName(errno: number): string {
  return names.get(errno) ?? `ER_${errno}`;
}

function parseNames(table: string): ReadonlyMap<number, string> {
  const found = new Map<number, string>();
  let errno = 0;
  for (const [word] of table.matchAll(/\S+/g)) {
    if (/^\d/.test(word)) errno = Number(word);
    else found.set(errno++, word);
  }
  return found;
}
